"""When certificates are valid. OpenSSL loads an expired certificate without a word, and Python
shows the dates of one only in a connection that has accepted it. So they are read from the DER.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

_PEM = re.compile(rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.+?)-----END ", re.DOTALL)
_VERSION, _UTC_TIME, _GENERALIZED_TIME = 0xA0, 0x17, 0x18
_LONG = 0x80
_BEFORE_VALIDITY = 3
"""The serial number, the algorithm of the signature, and the issuer."""


class Validity(NamedTuple):
    """From when until when a certificate is valid, in Unix seconds."""

    begins: int
    ends: int


def validities(pem: bytes) -> list[Validity]:
    """The dates of all certificates in a PEM file, in its order. Raises `ValueError`."""
    return [validity(base64.b64decode(body)) for body in _PEM.findall(pem)]


def all_valid(found: Sequence[Validity]) -> Validity | None:
    """While all of a chain are valid; `None` without any."""
    if not found:
        return None
    return Validity(max(one.begins for one in found), min(one.ends for one in found))


def any_valid(found: Sequence[Validity]) -> Validity | None:
    """While at least one of several CAs is valid, of which one replaces the other."""
    if not found:
        return None
    return Validity(min(one.begins for one in found), max(one.ends for one in found))


def validity(der: bytes) -> Validity:
    """The dates of a certificate. Raises `ValueError`."""
    [(_, certificate), *_] = _elements(der)
    [(_, to_be_signed), *_] = _elements(certificate)
    fields = list(_elements(to_be_signed))
    if fields[:1] and fields[0][0] == _VERSION:
        fields = fields[1:]
    if len(fields) <= _BEFORE_VALIDITY:
        raise ValueError("found an incomplete certificate")
    begins, ends = (_time(tag, text) for tag, text in _elements(fields[_BEFORE_VALIDITY][1]))
    return Validity(begins, ends)


def _elements(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The tag and the content of each element in a sequence of DER."""
    at = 0
    while at + 2 <= len(content):
        tag, length = content[at], content[at + 1]
        at += 2
        if length >= _LONG:
            size = length - _LONG
            length = int.from_bytes(content[at : at + size])
            at += size
        yield tag, content[at : at + length]
        at += length


def _time(tag: int, text: bytes) -> int:
    """Both forms have UTC and seconds in a certificate (RFC 5280, 4.1.2.5)."""
    written = text.decode("ascii")
    if tag == _UTC_TIME:
        written = f"{'19' if written >= '50' else '20'}{written}"
    elif tag != _GENERALIZED_TIME:
        raise ValueError(f"found an element with the tag {tag}, expected a time")
    return int(datetime.strptime(f"{written}+0000", "%Y%m%d%H%M%SZ%z").timestamp())
