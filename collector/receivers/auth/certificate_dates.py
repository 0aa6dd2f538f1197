"""When certificates are valid. OpenSSL loads an expired certificate without a word, and Python
shows the dates of one only in a connection that has accepted it. So they are read with pyasn1.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from typing import NamedTuple

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Validity(NamedTuple):
    """From when until when a certificate is valid, in Unix seconds."""

    begins: int
    ends: int


def validities(pem: bytes) -> list[Validity]:
    """The dates of all certificates in a PEM file, in its order. Raises `ValueError`."""
    return [_validity(ssl.PEM_cert_to_DER_cert(one)) for one in _PEM.findall(pem.decode("latin-1"))]


def _validity(der: bytes) -> Validity:
    # Most collectors have no certificate to read.
    from pyasn1.codec.der.decoder import decode  # noqa: PLC0415
    from pyasn1.error import PyAsn1Error  # noqa: PLC0415
    from pyasn1_modules.rfc5280 import Certificate  # noqa: PLC0415

    try:
        certificate, _ = decode(der, asn1Spec=Certificate())
    except PyAsn1Error as error:
        raise ValueError("found an incomplete certificate") from error
    dates = certificate["tbsCertificate"]["validity"]
    begins, ends = (dates[name].getComponent().asDateTime for name in ("notBefore", "notAfter"))
    return Validity(int(begins.timestamp()), int(ends.timestamp()))


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
