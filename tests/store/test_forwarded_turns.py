"""Turns on their way to another scorer, as they are stored."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
import zstandard

from pathgauge.collector.core.pipeline_events import ForwardedTurn, SessionNews
from pathgauge.collector.store.forwarded_turns import decode, encode
from pathgauge.scorers.types import Invocation

KEY = ("tenant", "ab" * 16, "cd" * 8)
INVOCATION = Invocation(KEY[1], KEY[2], "genai", tenant=KEY[0], conversation_id="a")
NEWS = SessionNews("a", {"tool_calls": 2.0, "judged": None})
AT = 1_800_000_000.25
TURNS = {
    "a turn": ForwardedTurn(KEY, INVOCATION, "idle", 3, at=AT),
    "a turn of unknown time": ForwardedTurn(KEY, INVOCATION, "idle", 3),
    "a turn that joins a session": ForwardedTurn(KEY, INVOCATION, "idle", 3, at=AT, joins=True),
    "no turn any more": ForwardedTurn(KEY, void=True, at=AT),
    "a turn of a session": ForwardedTurn(KEY, INVOCATION, revision=1, session=NEWS, at=AT),
    "scores of a session": ForwardedTurn(KEY, revision=1, session=NEWS),
}


def written_before(*values: object) -> bytes:
    """What versions wrote that did not store the time."""
    return zstandard.compress(orjson.dumps(values) + b"\n")


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_a_turn_is_read_as_it_was_written(turn: ForwardedTurn) -> None:
    assert decode(encode(turn)) == turn


def test_what_an_earlier_version_has_written_has_no_time() -> None:
    assert decode(written_before(KEY, "idle", 3, True)) == ForwardedTurn(
        KEY, closed_by="idle", revision=3, void=True
    )
    session = ["a", {"tool_calls": 2.0, "judged": None}]
    assert decode(written_before(KEY, "root_ended", 1, False, session)) == ForwardedTurn(
        KEY, revision=1, session=NEWS
    )


@pytest.mark.parametrize("name", ["a turn of unknown time", "scores of a session"])
def test_what_has_no_time_can_be_read_by_an_earlier_version(name: str) -> None:
    known, _, _ = zstandard.decompress(encode(TURNS[name])).partition(b"\n")
    assert len(orjson.loads(known)) == (4 if TURNS[name].session is None else 5)


def test_the_target_is_not_stored() -> None:
    turn = TURNS["a turn"]
    assert encode(replace(turn, target=2)) == encode(turn)
