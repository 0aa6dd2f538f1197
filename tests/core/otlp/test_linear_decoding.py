"""Whatever a request consists of, decoding it takes time in proportion to its size. The largest
request takes a few seconds, and memory in proportion to its size.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields

import pytest

from pathgauge.collector.core.otlp import (
    DecodeLimits,
    UndecodableError,
    decode_traces,
    decode_traces_json,
)
from pathgauge.collector.core.otlp.spans import Span
from support.hostile_json import INSIDE
from support.hostile_json_requests import BROKEN_VALUES, JSON, PLACES, any_json, within
from support.hostile_requests import PROTOBUF
from support.proportion import in_proportion, seconds

KIB, MIB = 1 << 10, 1 << 20
PROTOBUF_SIZE, JSON_SIZE = 128 * KIB, 64 * KIB
"""Of a large request; the small one is a sixteenth of it."""
SLOW_TIMES = 4
"""How many times larger the slow tests make it."""
MAX_REQUEST_BYTES = 16 * MIB
ONE_RECORD = 15 * KIB
"""No construct of this size exceeds a limit of one record."""
MAX_PROTOBUF_S, MAX_JSON_S = 5.0, 20.0
"""CPU time of decoding the largest request."""
MAX_JSON_BYTES = 20
"""Memory of decoding that the collector reserves for each byte of JSON."""

UNLIMITED = DecodeLimits(*[10**12] * len(fields(DecodeLimits)))
"""A limit would end the work early."""


def read(spans: Sequence[Span]) -> None:
    for span in spans:
        _ = span.attributes, span.events


def decode(body: bytes) -> None:
    with suppress(UndecodableError):
        read(decode_traces(body, limits=UNLIMITED).records)


def decode_json(body: bytes) -> None:
    with suppress(UndecodableError):
        read(decode_traces_json(body, limits=UNLIMITED).records)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("construct", PROTOBUF)
def test_a_request_in_protobuf_is_decoded_in_proportion_to_its_size(construct: str) -> None:
    assert in_proportion(PROTOBUF[construct], decode, PROTOBUF_SIZE)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("construct", JSON)
def test_a_request_in_json_is_decoded_in_proportion_to_its_size(construct: str) -> None:
    assert in_proportion(lambda size: JSON[construct](size).encode(), decode_json, JSON_SIZE)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("construct", INSIDE)
def test_any_json_in_a_request_is_decoded_in_proportion_to_its_size(
    construct: str, place: str
) -> None:
    assert in_proportion(lambda size: any_json(construct, place, size), decode_json, JSON_SIZE // 2)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("construct", PROTOBUF)
def test_a_large_request_in_protobuf_is_decoded_in_proportion_to_its_size(construct: str) -> None:
    assert in_proportion(PROTOBUF[construct], decode, SLOW_TIMES * PROTOBUF_SIZE)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("construct", JSON)
def test_a_large_request_in_json_is_decoded_in_proportion_to_its_size(construct: str) -> None:
    size = SLOW_TIMES * JSON_SIZE
    assert in_proportion(lambda size: JSON[construct](size).encode(), decode_json, size)


def largest(part: bytes) -> bytes:
    """Requests after each other are a request."""
    return part * (MAX_REQUEST_BYTES // len(part))


def largest_json(part: str) -> bytes:
    """The groups of many requests, as many as the limits of JSON allow."""
    before, after = '{"resourceSpans":[', "]}"
    group = part.removeprefix(before).removesuffix(after)
    tokens = sum(map(group.count, "{[,")) + group.count('"') // 2 + 1
    count = min(MAX_REQUEST_BYTES // len(part), DecodeLimits().max_json_tokens // tokens)
    return (before + ",".join([group] * count) + after).encode()


def answered(decode: Callable[[bytes], object]) -> Callable[[bytes], None]:
    def work(body: bytes) -> None:
        with suppress(UndecodableError):
            decode(body)

    return work


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("construct", PROTOBUF)
def test_the_largest_request_in_protobuf_is_decoded_within_seconds(construct: str) -> None:
    body = largest(PROTOBUF[construct](ONE_RECORD))
    assert seconds(answered(decode_traces), body) <= MAX_PROTOBUF_S


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("construct", JSON)
def test_the_largest_request_in_json_is_decoded_within_seconds(construct: str) -> None:
    body = largest_json(JSON[construct](ONE_RECORD))
    assert seconds(answered(decode_traces_json), body) <= MAX_JSON_S


@pytest.mark.parametrize("levels", [0, 40])
@pytest.mark.parametrize("value", BROKEN_VALUES)
def test_a_long_value_of_the_wrong_type_takes_little_time_and_memory(
    value: str, levels: int
) -> None:
    body = within(levels, BROKEN_VALUES[value])(MIB).encode()
    tracemalloc.start()
    try:
        decoded = decode_traces_json(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (decoded.records, decoded.rejected) == ((), {"undecodable": 1})
    assert peak < MAX_JSON_BYTES * len(body)
    assert seconds(decode_traces_json, body) < 0.1
