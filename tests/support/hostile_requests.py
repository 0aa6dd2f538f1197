"""Requests of every construct of OTLP/protobuf and of JSON, of about any number of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from support.wire import SPAN_ID, TRACE_ID, field, group, span, varint

Make = Callable[[int], bytes]
"""Makes something of about so many bytes."""

EMPTY = b""
NUMBER, TEXT = b"\x18\x01", field(1, b"x")
"""Values of attributes."""
ENTRY = field(1, field(1, b"k") + field(2, NUMBER))
"""Of a map."""
SPAN = span()


def times(piece: bytes) -> Make:
    return lambda size: piece * (size // len(piece))


def numbered(piece: Callable[[int], bytes]) -> Make:
    """Different pieces, which a function makes from a number of nine digits."""
    length = len(piece(10**8))
    return lambda size: b"".join(piece(10**8 + number) for number in range(size // length))


def inside(*fields: int, of: Make) -> Make:
    """The content of the last of these fields, each of which is the only content of the one before
    it.
    """

    def make(size: int) -> bytes:
        content = of(size)
        for number in reversed(fields):
            content = field(number, content)
        return content

    return make


def levels(*fields: int, around: bytes = NUMBER) -> Make:
    """These fields inside each other, as deep as the size allows."""

    def make(size: int) -> bytes:
        before, length = [around], len(around)
        while length < size:
            for number in reversed(fields):
                before.append(varint(number << 3 | 2) + varint(length))
                length += len(before[-1])
        return b"".join(reversed(before))

    return make


def deep(count: int, *fields: int) -> bytes:
    """A value inside so many values."""
    value = NUMBER
    for number in fields * count:
        value = field(number, value)
    return value


def resource(parts: Make) -> Make:
    return lambda size: field(1, parts(size) + field(2, field(2, SPAN)))


def scope(parts: Make) -> Make:
    return lambda size: field(1, field(2, parts(size) + field(2, SPAN)))


def in_span(content: Make) -> Make:
    return lambda size: group(SPAN + content(size))


def in_value(content: Make) -> Make:
    """The content of the value of an attribute."""
    return in_span(lambda size: field(9, field(1, b"k") + field(2, content(size))))


_ATTRIBUTE = field(1, b"k") + field(2, TEXT)
_GROUP_WIRE_TYPE = varint(100 << 3 | 3) + NUMBER + varint(100 << 3 | 4)
_LONG_VARINT = b"\x80" * 9 + b"\x01"

PROTOBUF: Mapping[str, Make] = {
    # Groups and records
    "resources": times(group(SPAN)),
    "empty resources": times(field(1, EMPTY)),
    "parts of a resource": resource(times(field(1, field(1, _ATTRIBUTE)))),
    "empty parts of a resource": resource(times(field(1, EMPTY))),
    "attributes of a resource": resource(inside(1, of=times(field(1, _ATTRIBUTE)))),
    "scopes": inside(1, of=times(field(2, field(2, SPAN)))),
    "empty scopes": inside(1, of=times(field(2, EMPTY))),
    "parts of a scope": scope(times(field(1, field(1, b"n")))),
    "spans": inside(1, 2, of=times(field(2, SPAN))),
    "empty spans": inside(1, 2, of=times(field(2, EMPTY))),
    "spans with an attribute": inside(1, 2, of=times(field(2, SPAN + field(9, _ATTRIBUTE)))),
    "spans that are not UTF-8": inside(1, 2, of=times(field(2, SPAN + field(5, b"\xff")))),
    "spans that break off": inside(1, 2, of=times(field(2, SPAN + b"\x4a\x7f"))),
    "a request that breaks off": lambda size: times(group(SPAN))(size) + b"\x0a\x7f",
    "unknown fields of a request": times(field(100, EMPTY)),
    "unknown numbers of a request": times(b"\x18\x01"),
    "numbers of ten bytes": times(b"\x18" + _LONG_VARINT),
    # Fields of a span
    "attributes": in_span(times(field(9, _ATTRIBUTE))),
    "attributes with different keys": in_span(
        numbered(lambda number: field(9, field(1, b"%d" % number) + field(2, NUMBER)))
    ),
    "empty attributes": in_span(times(field(9, EMPTY))),
    "events": in_span(times(field(11, field(2, b"e") + field(3, _ATTRIBUTE)))),
    "empty events": in_span(times(field(11, EMPTY))),
    "attributes of an event": in_span(inside(11, of=times(field(3, _ATTRIBUTE)))),
    "links": in_span(times(field(13, field(1, TRACE_ID) + field(2, SPAN_ID)))),
    "empty links": in_span(times(field(13, EMPTY))),
    "attributes of a link": in_span(inside(13, of=times(field(4, _ATTRIBUTE)))),
    "the status again": in_span(times(field(15, field(2, b"x") + b"\x18\x02"))),
    "the name again": in_span(times(field(5, b"name"))),
    "the start again": in_span(times(b"\x39" + bytes(8))),
    "the kind again": in_span(times(b"\x30\x7f")),
    "a packed number": in_span(lambda size: field(6, b"\x01" * size)),
    "flags of another type": in_span(times(b"\x80\x01\x01")),
    "unknown fields": in_span(times(field(100, b"x"))),
    "unknown numbers": in_span(times(varint(100 << 3) + b"\x01")),
    "unknown groups": in_value(times(_GROUP_WIRE_TYPE)),
    "unknown groups in groups": in_value(
        lambda size: varint(100 << 3 | 3) * (size // 4) + varint(100 << 3 | 4) * (size // 4)
    ),
    "groups": in_span(times(_GROUP_WIRE_TYPE)),
    "lengths of ten bytes": in_span(times(varint(100 << 3 | 2) + b"\x80" * 9 + b"\0")),
    "a long name": in_span(lambda size: field(5, b"x" * size)),
    "a long name of letters of four bytes": in_span(inside(5, of=times("😀".encode()))),
    "a long name that is not UTF-8": in_span(lambda size: field(5, b"x" * size + b"\xff")),
    "a long trace id": lambda size: group(span(trace_id=b"\x01" * size)),
    "a long span id": lambda size: group(span(span_id=b"\x01" * size)),
    "a long state": in_span(lambda size: field(3, b"x" * size)),
    # Values of attributes
    "a long text": in_value(lambda size: field(1, b"x" * size)),
    "long bytes": in_value(lambda size: field(7, b"\xff" * size)),
    "a long key": in_span(lambda size: field(9, field(1, b"k" * size))),
    "the same number": in_value(times(NUMBER)),
    "the same text": in_value(times(TEXT)),
    "the same key": in_span(inside(9, of=times(field(1, b"k")))),
    "values in values of the same field": in_span(
        lambda size: field(9, field(1, b"k") + times(field(2, field(5, field(1, NUMBER))))(size))
    ),
    "an array": in_value(inside(5, of=times(field(1, NUMBER)))),
    "an array of empty values": in_value(inside(5, of=times(field(1, EMPTY)))),
    "an array of texts": in_value(inside(5, of=times(field(1, TEXT)))),
    "an array of arrays": in_value(inside(5, of=times(field(1, field(5, EMPTY))))),
    "an array of maps": in_value(inside(5, of=times(field(1, field(6, ENTRY))))),
    "parts of an array": in_value(times(field(5, field(1, NUMBER)))),
    "a map": in_value(inside(6, of=times(ENTRY))),
    "a map of empty entries": in_value(inside(6, of=times(field(1, EMPTY)))),
    "a map with different keys": in_value(
        inside(6, of=numbered(lambda key: field(1, field(1, b"%d" % key) + field(2, NUMBER))))
    ),
    "parts of a map": in_value(times(field(6, ENTRY))),
    "an array and a map in turns": in_value(times(field(5, field(1, NUMBER)) + field(6, ENTRY))),
    "arrays 20 deep": in_value(inside(5, of=times(field(1, deep(20, 1, 5))))),
    "arrays 45 deep": in_value(inside(5, of=times(field(1, deep(45, 1, 5))))),
    "maps 20 deep": in_value(inside(5, of=times(field(1, deep(20, 2, 1, 6))))),
    "maps 30 deep": in_value(inside(5, of=times(field(1, deep(30, 2, 1, 6))))),
    "an array in 45 arrays": in_value(inside(*(5, 1) * 45, 5, of=times(field(1, NUMBER)))),
    "a map in 30 maps": in_value(inside(*(6, 1, 2) * 30, 6, of=times(ENTRY))),
    "arrays deeper than allowed": in_value(levels(5, 1)),
    "maps deeper than allowed": in_value(levels(6, 1, 2)),
}
"""Each construct of a request in protobuf, by name."""
