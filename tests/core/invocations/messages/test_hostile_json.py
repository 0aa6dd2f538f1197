"""Whatever JSON an attribute holds, reading it takes time in proportion to its length."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.tool_definitions import MAX_CHARACTERS, schemas
from pathgauge.collector.core.invocations.messages.unwrap import bare_result
from pathgauge.collector.core.invocations.messages.values import as_text, decoded
from support.hostile_json import AROUND, INSIDE, written
from support.proportion import in_proportion, seconds

KIB, MIB = 1 << 10, 1 << 20
SIZE = 32 * KIB
"""Of a large text; the small one is a sixteenth of it."""
MAX_S_PER_MIB = 4.0
"""CPU time of one reading. One span has 4 MiB at most, and a whole trace 10 s."""


def read_as_messages(text: str) -> None:
    parse_messages(text, "user")


def read_as_result(text: str) -> None:
    as_text(bare_result(decoded(text)).value)


def read_as_definitions(text: str) -> None:
    schemas(text)


READINGS = (read_as_messages, read_as_result)


def read(text: str) -> None:
    for reading in READINGS:
        reading(text)


@pytest.mark.slow
@pytest.mark.parametrize("construct", INSIDE)
def test_json_is_read_in_proportion_to_its_length(construct: str) -> None:
    assert in_proportion(lambda size: written(construct, "an object", size), read, SIZE)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("construct", INSIDE)
def test_json_anywhere_is_read_in_proportion_to_its_length(construct: str, around: str) -> None:
    assert in_proportion(lambda size: written(construct, around, size), read, SIZE)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("construct", INSIDE)
def test_json_of_a_mebibyte_is_read_within_seconds(construct: str, around: str) -> None:
    text = written(construct, around, MIB)
    assert [
        reading.__name__ for reading in READINGS if seconds(reading, text) > MAX_S_PER_MIB
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize("construct", INSIDE)
def test_the_longest_definitions_of_tools_are_read_within_a_second(construct: str) -> None:
    text = written(construct, "an array", MAX_CHARACTERS)[:MAX_CHARACTERS]
    assert seconds(read_as_definitions, text) < 1.0
