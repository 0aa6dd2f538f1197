"""Requests of every construct of OTLP/JSON, of about any number of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from support.hostile_json import INSIDE

Write = Callable[[int], str]
"""Writes something of about so many characters."""

IDS = f'"traceId":"{"01" * 16}","spanId":"{"02" * 8}"'
SPAN = f"{{{IDS}}}"
LINK = f'{{"traceId":"{"01" * 16}","spanId":"{"02" * 8}"}}'
NUMBER, TEXT = '{"intValue":"1"}', '{"stringValue":"x"}'
ENTRY = f'{{"key":"k","value":{TEXT}}}'
GROUP = f'{{"scopeSpans":[{{"spans":[{SPAN}]}}]}}'


def listed(piece: str) -> Write:
    return lambda size: ",".join([piece] * max(1, size // (len(piece) + 1)))


def numbered(piece: str) -> Write:
    """Different pieces, each with its number in place of `#`."""
    return lambda size: ",".join(
        piece.replace("#", f"{number:09}") for number in range(size // (len(piece) + 9))
    )


def inside(around: str, of: Write) -> Write:
    """A text with something in place of `#`."""
    before, after = around.split("#")
    return lambda size: before + of(size) + after


def in_request(of: Write) -> Write:
    return inside('{"resourceSpans":[#]}', of)


def in_spans(of: Write) -> Write:
    return in_request(inside('{"scopeSpans":[{"spans":[#]}]}', of))


def in_span(of: Write) -> Write:
    return in_spans(inside(f"{{{IDS},#}}", of))


def in_value(of: Write) -> Write:
    return in_span(inside('"attributes":[{"key":"k","value":{#}}]', of))


def in_array(of: Write) -> Write:
    return in_value(inside('"arrayValue":{"values":[#]}', of))


def in_map(of: Write) -> Write:
    return in_value(inside('"kvlistValue":{"values":[#]}', of))


def letters(size: int) -> str:
    return "x" * size


def digits(size: int) -> str:
    return "1" * size


def deep(levels: int, value: str = NUMBER) -> str:
    """A value in so many arrays."""
    return '{"arrayValue":{"values":[' * levels + value + "]}}" * levels


def deep_map(levels: int) -> str:
    before = '{"kvlistValue":{"values":[{"key":"k","value":'
    return before * levels + NUMBER + "}]}}" * levels


JSON: Mapping[str, Write] = {
    # Groups and records
    "resources": in_request(listed(GROUP)),
    "empty resources": in_request(listed("{}")),
    "attributes of a resource": in_request(
        inside(f'{{"resource":{{"attributes":[#]}},{GROUP[1:]}', listed(ENTRY))
    ),
    "scopes": in_request(inside('{"scopeSpans":[#]}', listed(f'{{"spans":[{SPAN}]}}'))),
    "empty scopes": in_request(inside('{"scopeSpans":[#]}', listed("{}"))),
    "spans": in_spans(listed(SPAN)),
    "empty spans": in_spans(listed("{}")),
    "spans with an attribute": in_spans(listed(f'{{{IDS},"attributes":[{ENTRY}]}}')),
    "spans without an id": in_spans(listed('{"traceId":"?","spanId":1}')),
    "spans of another type": in_spans(listed("1")),
    # Members of a span
    "attributes": in_span(inside('"attributes":[#]', listed(ENTRY))),
    "attributes with different keys": in_span(
        inside('"attributes":[#]', numbered('{"key":"#","value":{}}'))
    ),
    "empty attributes": in_span(inside('"attributes":[#]', listed("{}"))),
    "events": in_span(inside('"events":[#]', listed(f'{{"name":"e","attributes":[{ENTRY}]}}'))),
    "empty events": in_span(inside('"events":[#]', listed("{}"))),
    "links": in_span(inside('"links":[#]', listed(LINK))),
    "empty links": in_span(inside('"links":[#]', listed("{}"))),
    "the name again": in_span(listed('"name":"x"')),
    "the attributes again": in_span(listed(f'"attributes":[{ENTRY}]')),
    "unknown members": in_span(numbered('"#":0')),
    "unknown members in brackets": in_span(numbered('"[#]":0')),
    "a long name": in_span(inside('"name":"#"', letters)),
    "a long trace id": in_spans(inside('{"traceId":"#"}', digits)),
    "a long trace id that is not hexadecimal": in_spans(inside('{"traceId":"#"}', letters)),
    "a long kind": in_span(inside('"kind":"#"', letters)),
    "a long start": in_span(inside('"startTimeUnixNano":"#"', digits)),
    "text instead of a status": in_span(inside('"status":"#"', letters)),
    "text instead of links": in_span(inside('"links":"#"', letters)),
    # Values of attributes
    "a long text": in_value(inside('"stringValue":"#"', letters)),
    "long bytes": in_value(inside('"bytesValue":"#"', lambda size: "AAAA" * (size // 4))),
    "bytes of another alphabet": in_value(inside('"bytesValue":"#"', lambda size: "?" * size)),
    "the same value": in_value(listed('"intValue":"1"')),
    "an array": in_array(listed(NUMBER)),
    "an array of empty values": in_array(listed("{}")),
    "an array of texts": in_array(listed(TEXT)),
    "an array of arrays": in_array(listed('{"arrayValue":{}}')),
    "an array of floats": in_array(listed('{"doubleValue":1.5e-3}')),
    "an array of floats as text": in_array(listed('{"doubleValue":"1.5e-3"}')),
    "an array of nulls": in_array(listed("null")),
    "an array of two values each": in_array(listed('{"intValue":"1","boolValue":true}')),
    "a map": in_map(listed(ENTRY)),
    "a map of empty entries": in_map(listed("{}")),
    "a map with different keys": in_map(numbered('{"key":"#","value":{"boolValue":true}}')),
    "arrays 20 deep": in_array(listed(deep(20))),
    "arrays 45 deep": in_array(listed(deep(45))),
    "maps 20 deep": in_array(listed(deep_map(20))),
    "maps 30 deep": in_array(listed(deep_map(30))),
    "arrays deeper than allowed": in_array(listed(deep(300))),
    "floats of many digits": in_array(listed(f'{{"doubleValue":"{"1" * 900}"}}')),
    "integers of many digits": in_array(listed(f'{{"intValue":"{"0" * 900}"}}')),
}
"""Each construct of a request that is JSON, by name."""

BROKEN_VALUES: Mapping[str, Write] = {
    "text instead of an array": inside('{"arrayValue":"#"}', letters),
    "text instead of a map": inside('{"kvlistValue":"#"}', letters),
    "text instead of the values of an array": inside('{"arrayValue":{"values":"#"}}', letters),
    "text instead of a value": inside('"#"', letters),
    "a list instead of an array": inside('{"arrayValue":[#]}', listed('"xxxxxxxxx"')),
    "an object instead of the values of an array": inside(
        '{"arrayValue":{"values":{"a":"#"}}}', letters
    ),
    "an integer that is none": inside('{"intValue":"# "}', letters),
    "a float that is none": inside('{"doubleValue":"#"}', letters),
    "a list instead of a float": inside('{"doubleValue":[#]}', listed('"xxxxxxxxx"')),
    "text instead of true": inside('{"boolValue":"#"}', letters),
    "a list instead of a text": inside('{"stringValue":[#]}', listed('"xxxxxxxxx"')),
    "bytes that are none": inside('{"bytesValue":"#A"}', lambda size: "AAAA" * (size // 4)),
    "the name of an extension": inside('{"[#]":1}', letters),
}
"""Values of the wrong type, which the errors of protobuf quote."""


def within(levels: int, value: Write) -> Write:
    """A request with a value in so many arrays."""
    return in_array(inside(deep(levels, "#"), value))


PLACES: Mapping[str, Callable[[Write], Write]] = {
    "the request": lambda construct: construct,
    "an unknown member": lambda construct: inside('{"x":[#]}', construct),
    "the spans": in_spans,
    "the attributes of a span": lambda construct: in_span(inside('"attributes":[#]', construct)),
    "the values of an array": in_array,
    "a text": lambda construct: in_span(inside('"name":"#"', construct)),
}
"""Where any JSON may stand in a request."""


def any_json(construct: str, place: str, size: int) -> bytes:
    """A request with a construct of JSON in one of the `PLACES`."""
    return PLACES[place](INSIDE[construct])(size).encode()
