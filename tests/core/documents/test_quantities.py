"""Durations, sizes, counts and endpoints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import pytest
from hypothesis import given, strategies as st
from pydantic import TypeAdapter, ValidationError

from pathgauge.collector.core.documents.quantities import (
    Duration,
    Endpoint,
    at_least,
    parse_count,
    parse_duration,
    parse_endpoint,
    parse_size,
)
from pathgauge.scorers.types import Json


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("6s", 6),
        ("10m", 600),
        ("1h30m", 5400),
        ("1h0m30s", 3630),
        ("500ms", 0.5),
        ("1.5h", 5400),
        ("7d", 604800),
        ("0s", 0),
        (0, 0),
        (6, 6),
        (0.25, 0.25),
    ],
)
def test_durations_are_seconds(value: Json, seconds: float) -> None:
    assert parse_duration(value) == seconds


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("16MiB", 16 * 2**20),
        ("1.5KiB", 1536),
        ("64 KiB", 65536),
        ("2GiB", 2**31),
        ("1kB", 1000),
        ("1KB", 1000),
        ("2MB", 2_000_000),
        ("1GB", 10**9),
        ("512B", 512),
        (4096, 4096),
    ],
)
def test_sizes_are_bytes(value: Json, size: int) -> None:
    assert parse_size(value) == size


@pytest.mark.parametrize(("value", "count"), [(1, 1), (20_000, 20_000), ("100", 100)])
def test_counts_are_whole_numbers(value: Json, count: int) -> None:
    assert parse_count(value) == count


@pytest.mark.parametrize(
    ("value", "endpoint"),
    [
        ("127.0.0.1:4317", Endpoint("127.0.0.1", 4317)),
        ("localhost:0", Endpoint("localhost", 0)),
        ("0.0.0.0:65535", Endpoint("0.0.0.0", 65535)),
        ("[::1]:4317", Endpoint("::1", 4317)),
        ("bücher.example:4317", Endpoint("bücher.example", 4317)),
    ],
)
def test_endpoints_are_hosts_with_ports(value: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(value) == endpoint
    assert str(endpoint) == value


@pytest.mark.parametrize(
    ("parse", "values", "expected"),
    [
        (
            parse_duration,
            [
                "",
                "6",
                "6 s",
                "s",
                "6s ",
                "-6s",
                "6x",
                "1h30",
                "6S",
                "٦s",
                "1e3s",
                -1,
                True,
                None,
                [],
                float("nan"),
                float("inf"),
                10**309,
            ],
            "a duration such as 6s, 10m or 1h30m",
        ),
        (
            parse_size,
            [
                "9" * 400 + "MiB",
                "",
                "16",
                "16mib",
                "MiB",
                "-1MiB",
                "0B",
                "0.1B",
                "1KIB",
                0,
                -5,
                1.5,
                True,
                None,
                {},
            ],
            "a size such as 16MiB",
        ),
        (parse_size, [10**18, "1000000000GB", 10**400], "a size such as 16MiB, below 10^18"),
        (
            parse_count,
            ["", "0", "1.0", "-1", "x", "١", "9" * 5000, 0, -1, 2.5, True, None],
            "a whole number from 1",
        ),
        (parse_count, [10**18, 10**400], "a whole number from 1, below 10^18"),
        (
            parse_endpoint,
            [
                "",
                "4317",
                ":4317",
                "localhost",
                "host:",
                "host:x",
                "host:65536",
                "http://host:1",
                "a b:1",
                "::1:4317",
                "[x]:1",
                4317,
                None,
                "a\0b:1",
                "é" * 64 + ":1",
                "\xad:1",
            ],
            "host:port, such as 127.0.0.1:4317 or 0.0.0.0:4317",
        ),
    ],
)
def test_an_invalid_value_is_refused_with_what_was_expected(
    parse: Callable[[Json], Json], values: list[Json], expected: str
) -> None:
    for value in values:
        with pytest.raises(ValueError, match=r".") as caught:
            parse(value)
        assert (value, str(caught.value)) == (value, expected)


@given(st.text() | st.integers() | st.floats() | st.none() | st.booleans())
def test_any_value_is_parsed_or_refused(value: Json) -> None:
    for parse in (parse_duration, parse_size, parse_count, parse_endpoint):
        with suppress(ValueError):
            parse(value)


@pytest.mark.parametrize(("value", "accepted"), [("1d", True), ("25h", True), ("23h59m", False)])
def test_a_bound_is_named_in_the_unit_people_write(value: str, accepted: bool) -> None:
    duration: TypeAdapter[float] = TypeAdapter(Annotated[Duration, at_least(parse_duration, "1d")])
    if accepted:
        assert duration.validate_python(value) == parse_duration(value)
    else:
        with pytest.raises(ValidationError, match="at least 1d"):
            duration.validate_python(value)
