"""OTLP/protobuf: splits an export request into the bytes of its records without decoding them.

This walks the wire format instead of using the generated parser, for three reasons. The parser
refuses a whole request because of one invalid record. It creates an object per entry, so that
16 MiB of two-byte entries (16 KiB after gzip) take 400 MiB of memory. And it cannot stop early. The
walk takes a quarter of a microsecond per span; the records themselves are decoded by protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from pathgauge.collector.core.otlp.request import (
    DecodeLimits,
    MessageT,
    RejectedError,
    ResourceGroup,
    ScopeGroup,
    Signal,
    UndecodableError,
    more_than,
    too_large,
    too_many_attributes,
    too_many_values,
)

# Tags of the length-delimited fields 1 and 2. Requests, resource groups and scope groups of both
# signals use the same field numbers.
_GROUP = _CONTEXT = 0x0A
_MEMBER = 0x12

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}
_MIN_TAG = 1 << 3
_ONE_BYTE = 0x80
"""Varints below this number take one byte."""
_TWO_BYTES = 1 << 14
"""The same for two bytes."""
_MIN_FIELD_BYTES = 2
"""Bytes of an empty field: tag and length."""


class ProtobufReader:
    """Reads protobuf requests of either signal."""

    def __init__(self, limits: DecodeLimits) -> None:
        self.limits = limits
        # Records that are too short to exceed a limit are not walked.
        max_fields = min(limits.max_attributes, limits.max_values)
        self._max_unwalked_bytes = (max_fields + 1) * _MIN_FIELD_BYTES - 1

    def groups(self, body: bytes, signal: Signal) -> Iterator[ResourceGroup[bytes]]:
        """Find the groups of a request. Raises `UndecodableError`."""
        envelope = _Envelope(body, self.limits.max_entries)
        for group in envelope.group(slice(0, len(body)), _GROUP)[1]:
            resource, members = envelope.group(group)
            scopes: list[ScopeGroup[bytes]] = []
            for scope, records in map(envelope.group, members):
                if records:
                    sources = [body[record] for record in records]
                    scopes.append(ScopeGroup(_merged(body, scope), sources))
            if scopes:
                yield ResourceGroup(_merged(body, resource), scopes)

    def message(
        self, source: bytes, kind: type[MessageT], max_bytes: int
    ) -> tuple[bytes, MessageT]:
        """Decode a record, resource or scope. Raises `RejectedError`."""
        if len(source) > max_bytes:
            raise too_large(len(source), max_bytes)
        try:
            if len(source) > self._max_unwalked_bytes:
                self._check_counts(source, kind)
            return source, kind.FromString(source)
        except (DecodeError, UndecodableError) as error:
            text = f"not a valid {kind.DESCRIPTOR.name} message"
            raise RejectedError("undecodable", text) from error

    def _check_counts(self, source: bytes, kind: type[MessageT]) -> None:
        """Count before decoding: an empty message of two bytes takes fifty bytes when decoded."""
        max_fields = len(source) // _MIN_FIELD_BYTES
        limit = self.limits.max_attributes
        if max_fields > limit and more_than(limit, fields(source, slice(0, len(source)))):
            raise too_many_attributes(limit)
        limit = self.limits.max_values
        if max_fields > limit and more_than(limit, _inner_messages(source, kind)):
            raise too_many_values(limit)


class _Envelope:
    """A request. Its entries are counted while they are found."""

    __slots__ = ("_body", "_left", "_max_entries")

    def __init__(self, body: bytes, max_entries: int) -> None:
        self._body = body
        self._max_entries = self._left = max_entries

    def group(self, message: slice, member: int = _MEMBER) -> tuple[list[slice], list[slice]]:
        """The positions of the parts of a group's resource or scope, and of its members. Raises
        `UndecodableError`.
        """
        context: list[slice] = []
        members: list[slice] = []
        for tag, field in islice(fields(self._body, message), self._left + 1):
            self._left -= 1
            if tag == member:
                members.append(field)
            elif tag == _CONTEXT:
                context.append(field)
        if self._left < 0:
            raise UndecodableError(f"more than {self._max_entries:,} groups and records")
        return context, members


def _merged(body: bytes, parts: list[slice]) -> bytes:
    """The encoding of a message whose field may occur several times: protobuf merges messages by
    concatenating their encodings.
    """
    return body[parts[0]] if len(parts) == 1 else b"".join(body[part] for part in parts)


def fields(data: bytes, message: slice) -> Iterator[tuple[int, slice]]:
    """Yield tag and position of each field of the message at `data[message]`. Raises
    `UndecodableError`.
    """
    position, end = message.start, message.stop
    try:
        while position < end:
            tag, start = data[position], position + 1
            if tag >= _ONE_BYTE:
                tag, start = _varint(data, position)
            kind = tag & 7
            if kind == _LENGTH_DELIMITED:
                size, start = data[start], start + 1
                if size >= _ONE_BYTE:
                    # Nearly all records take two bytes here; a call would cost as much as the rest.
                    size, start = size - _ONE_BYTE + (data[start] << 7), start + 1
                    if size >= _TWO_BYTES:
                        size, start = _varint(data, start - 2)
                position = start + size
            elif kind == _VARINT:
                _, position = _varint(data, start)
            else:
                position = start + _FIXED_SIZES[kind]
            if position > end or tag < _MIN_TAG:
                raise IndexError
            yield tag, slice(start, position)
    except LookupError:
        raise UndecodableError("not a protobuf message") from None


def _inner_messages(data: bytes, kind: type[Message]) -> Iterator[slice]:
    """Yield the positions of nested messages, at any depth. Raises `UndecodableError`."""
    unread = [(slice(0, len(data)), kind.DESCRIPTOR)]
    while unread:
        message, descriptor = unread.pop()
        kinds = _message_fields(descriptor)
        for tag, position in fields(data, message):
            if tag in kinds:
                yield position
                unread.append((position, kinds[tag]))


@cache
def _message_fields(kind: Descriptor) -> Mapping[int, Descriptor]:
    """The fields whose values are messages, by tag."""
    return {
        field.number << 3 | _LENGTH_DELIMITED: field.message_type
        for field in kind.fields
        if field.message_type
    }


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Decode a varint. Returns its value and the position after it. Raises `IndexError`."""
    value = data[position]
    if value < 0x80:
        return value, position + 1
    value &= 0x7F
    for shift in range(7, 70, 7):
        position += 1
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
    raise IndexError
