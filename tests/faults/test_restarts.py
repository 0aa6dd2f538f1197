"""Conversations, turns that change their place, and late spans have the same results with and
without restarts.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig, resolve
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.testing import span, trace_id

from .traffic import request_of
from .virtual import VirtualCollector

pytestmark = pytest.mark.slow

Step: TypeAlias = tuple[float, Sequence[Span]]
"""Seconds that pass after these spans were sent in one request and read."""

REFERENCE = {
    "scenario": "talk",
    "turns": [{"expected_tools": ["greet"]}, {"expected_tools": ["help"]}],
}
KEPT = 4 * 2
"""Turns of one conversation, by its reference."""
BOUNDS = Bounds(settle=6.0, idle=30.0, max_age=600.0, late_ttl=300.0)
READ = 10.0
"""In seconds; long enough for a complete trace to be read."""
CONVERSATION_IDLE = 1800.0


OPEN = span("open", "POST /chat", trace="open", parent="missing")
"""Its trace waits for its parent until `idle`, and so does its journal row."""


@pytest.fixture
def scoring(tmp_path: Path) -> ActiveConfig:
    (tmp_path / "references.yaml").write_text(json.dumps(REFERENCE))
    return resolve(
        Config(
            references=(str(tmp_path / "references.yaml"),), criteria={"tool_trajectory_f1": 1.0}
        )
    )


def agent(name: str, conversation: str = "", start: float = 0.0) -> Span:
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "agent",
    }
    if conversation:
        attributes |= {"pathgauge.scenario.id": "talk", "gen_ai.conversation.id": conversation}
    return span(name, "invoke_agent agent", attributes, trace=name, start=start, end=start + 9)


def tool(of: str, name: str, start: float = 0.0) -> Span:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return span(
        of + name,
        f"execute_tool {name}",
        attributes,
        trace=of,
        parent=of,
        start=start + 1,
        end=start + 2,
    )


def turn(number: int, conversation: str = "conversation") -> list[Span]:
    """As the reference expects it, if it expects any."""
    name, start = f"{conversation} {number}", 10.0 * number
    return [
        agent(name, conversation, start),
        tool(name, ("greet", "help", "refund")[min(number, 2)], start),
    ]


def played(
    folder: Path,
    scoring: ActiveConfig,
    steps: Sequence[Step],
    *,
    restarts: bool,
    bounds: Bounds = BOUNDS,
) -> VirtualCollector:
    """A stopped collector that received these requests, with a restart after every pause or without
    any.
    """
    collector = VirtualCollector(folder, scoring, bounds)
    collector.start()
    for number, (seconds, spans) in enumerate(steps):
        collector.send([request_of(number, spans)])
        for pause in (READ, seconds):
            collector.wait(pause)
            collector.commit()
            if restarts:
                collector.crash()
                collector.start()
    collector.wait(CONVERSATION_IDLE)
    collector.commit()
    collector.crash()
    return collector


def f1(collector: VirtualCollector) -> list[tuple[str, int, float | None]]:
    """Trace, revision and score of all evaluations."""
    evaluations = [told for told in collector.told if isinstance(told, Evaluation)]
    return [
        (
            one.invocation.trace_id,
            one.revision,
            next((result.score.value for result in one.results), None),
        )
        for one in evaluations
    ]


def stored(folder: Path, columns: str) -> list[tuple[Any, ...]]:
    """The turns that the next process would restore, in order."""
    with closing(sqlite3.connect(folder / "pathgauge.db")) as connection:
        return connection.execute(f"SELECT {columns} FROM turns ORDER BY at, id").fetchall()


@pytest.mark.parametrize("turns", [3, KEPT, KEPT + 1, KEPT + 5])
def test_a_conversation_with_unexpected_turns_has_the_same_score_after_restarts(
    tmp_path: Path, scoring: ActiveConfig, turns: int
) -> None:
    pauses = [0.0] * (turns - 2) + [CONVERSATION_IDLE - 2 * READ] * 2
    steps = [(pause, turn(number)) for number, pause in enumerate(pauses)]
    cases = [
        [
            told
            for told in played(tmp_path / str(restarts), scoring, steps, restarts=restarts).told
            if isinstance(told, ConversationResult)
        ]
        for restarts in (False, True)
    ]
    assert [(case.matched, case.missing, case.unexpected) for case in cases[0]] == [
        (2, 0, turns - 2)
    ]
    assert cases[1] == cases[0]
    assert stored(tmp_path / "True", "*") == []


def test_of_turns_beyond_those_that_are_kept_the_number_alone_is_stored(
    tmp_path: Path, scoring: ActiveConfig
) -> None:
    collector = VirtualCollector(tmp_path / "store", scoring, BOUNDS)
    collector.start()
    for number in range(KEPT + 3):
        for conversation in ("one", "another")[: 2 - number % 2]:
            collector.send([request_of(number, turn(number, conversation))])
        collector.wait(READ)
    collector.commit()
    collector.crash()
    rows = stored(tmp_path / "store", "conversation, body")
    assert [(of, body) for of, body in rows if not body.startswith("{")] == [("one", "3")]
    assert len(rows) == KEPT + 1 + (KEPT + 3 + 1) // 2


REMEMBERED = BOUNDS.late_ttl + BOUNDS.max_age
"""How long the fingerprints of a trace are known after it was read; its journal rows are deleted
after `late_ttl`.
"""


@pytest.mark.parametrize(
    "pause", [0.0, BOUNDS.late_ttl, REMEMBERED - READ, REMEMBERED, CONVERSATION_IDLE - 3 * READ]
)
@pytest.mark.parametrize(
    "bounds", [BOUNDS, replace(BOUNDS, max_retained_bytes=0)], ids=["in its time", "at once"]
)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_turn_whose_trace_was_given_up_is_scored_again_when_an_earlier_one_comes(
    tmp_path: Path, scoring: ActiveConfig, pause: float, bounds: Bounds, restarts: bool
) -> None:
    collector = played(
        tmp_path / "store",
        scoring,
        [(pause, turn(1)), (0.0, turn(0))],
        restarts=restarts,
        bounds=bounds,
    )
    first, second = trace_id("conversation 0"), trace_id("conversation 1")
    assert f1(collector) == [(second, 0, 0.0), (first, 0, 1.0), (second, 1, 1.0)]
    assert [
        [score.value for score in told.scores]
        for told in collector.told
        if isinstance(told, ConversationResult)
    ] == [[1.0]]


@pytest.mark.parametrize("restarts", [False, True])
def test_turns_in_reverse_order_end_with_their_own_number(
    tmp_path: Path, scoring: ActiveConfig, restarts: bool
) -> None:
    steps = [(500.0, turn(2)), (REMEMBERED - 500.0, turn(1)), (0.0, turn(0))]
    first, second, third = (trace_id(f"conversation {number}") for number in range(3))
    collector = played(tmp_path / "store", scoring, steps, restarts=restarts)
    assert f1(collector) == [
        (third, 0, 0.0), (second, 0, 0.0), (third, 1, 0.0),
        (first, 0, 1.0), (second, 1, 1.0), (third, 2, None),
    ]  # fmt: skip
    assert [
        (told.matched, told.missing, told.unexpected, [score.value for score in told.scores])
        for told in collector.told
        if isinstance(told, ConversationResult)
    ] == [(2, 0, 1, [2 / 3])]


@pytest.mark.parametrize("pauses", [(BOUNDS.late_ttl, 0.0), (500.0, REMEMBERED - 500.0)])
@pytest.mark.parametrize("restarts", [False, True])
def test_spans_that_came_too_late_do_not_keep_a_turn_from_being_scored_again(
    tmp_path: Path, scoring: ActiveConfig, pauses: tuple[float, float], restarts: bool
) -> None:
    late = [tool("conversation 1", "too late"), OPEN]
    steps = [(pauses[0], turn(1)), (pauses[1], late), (0.0, turn(0))]
    first, second = trace_id("conversation 0"), trace_id("conversation 1")
    assert f1(played(tmp_path / "store", scoring, steps, restarts=restarts)) == [
        (second, 0, 0.0),
        (first, 0, 1.0),
        (second, 1, 1.0),
    ]


def test_a_trace_that_a_late_span_opened_again_before_a_restart_is_revised(
    tmp_path: Path, scoring: ActiveConfig
) -> None:
    collector = VirtualCollector(tmp_path / "store", scoring, BOUNDS)
    collector.start()
    collector.wait(2 * REMEMBERED)
    root, call = turn(0)
    collector.send([request_of(0, [root])])
    collector.wait(READ)
    collector.send([request_of(1, [call])])
    collector.take_in()
    collector.commit()
    collector.crash()
    collector.start()
    collector.wait(READ)
    collector.commit()
    collector.crash()
    assert f1(collector) == [(root.trace_id, 0, None), (root.trace_id, 1, 1.0)]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_span_that_came_too_late_stays_dropped_though_its_row_is_needed(
    tmp_path: Path, scoring: ActiveConfig, restarts: bool
) -> None:
    root, call = turn(0)
    steps = [
        (BOUNDS.late_ttl, [root, OPEN]),
        (0.0, [call, span("more", "POST /chat", trace="open", parent="missing")]),
    ]
    collector = played(
        tmp_path / "store",
        scoring,
        steps,
        restarts=restarts,
        bounds=replace(BOUNDS, idle=BOUNDS.max_age),
    )
    assert f1(collector) == [(root.trace_id, 0, None)]
    assert dict(collector.telemetry.spans_dropped.items()) == {("late",): 1}
