"""What a restart divides ends as in one process: conversations, turns that move, and spans that come too late."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from collector.assembler import Bounds
from collector.config import Config
from collector.conversations import Case
from collector.setup import Setup, resolve
from collector.spans import Span
from collector.testing import span

from .traffic import request_of
from .virtual import VirtualCollector

Step: TypeAlias = tuple[float, Sequence[Span]]
"""How many seconds pass after these spans came in one request."""

REFERENCE = {"scenario": "talk", "turns": [{"expected_tools": ["greet"]}, {"expected_tools": ["help"]}]}
KEPT = 4 * 2
"""Turns of one conversation, by its reference."""
BOUNDS = Bounds(settle=6.0, idle=30.0, max_age=600.0, late_ttl=300.0)
CONVERSATION_IDLE = 1800.0


@pytest.fixture
def scoring(tmp_path: Path) -> Setup:
    (tmp_path / "references.yaml").write_text(json.dumps(REFERENCE))
    return resolve(Config(references=(str(tmp_path / "references.yaml"),), criteria={"tool_trajectory_f1": 1.0}))


def agent(name: str, conversation: str = "", start: float = 0.0) -> Span:
    attributes: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "agent"}
    if conversation:
        attributes |= {"pathgauge.scenario.id": "talk", "gen_ai.conversation.id": conversation}
    return span(name, "invoke_agent agent", attributes, trace=name, start=start, end=start + 9)


def tool(of: str, name: str, start: float = 0.0) -> Span:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return span(of + name, f"execute_tool {name}", attributes, trace=of, parent=of, start=start + 1, end=start + 2)


def turn(number: int, conversation: str = "conversation") -> list[Span]:
    """As the reference expects it, if it expects any."""
    name, start = f"{conversation} {number}", 10.0 * number
    return [agent(name, conversation, start), tool(name, ("greet", "help", "refund")[min(number, 2)], start)]


def played(folder: Path, scoring: Setup, steps: Sequence[Step], *, restarts: bool) -> VirtualCollector:
    """A collector that got these requests, was started anew after each of them or never, and has ended since."""
    collector = VirtualCollector(folder, scoring, BOUNDS)
    collector.start()
    for number, (seconds, spans) in enumerate(steps):
        collector.send([request_of(number, spans)])
        collector.wait(seconds)
        collector.commit()
        if restarts:
            collector.crash()
            collector.start()
    collector.wait(CONVERSATION_IDLE)
    collector.commit()
    collector.crash()
    return collector


def stored(folder: Path, columns: str) -> list[tuple[Any, ...]]:
    """Of the turns that the next process would know, in their order."""
    with closing(sqlite3.connect(folder / "pathgauge.db")) as connection:
        return connection.execute(f"SELECT {columns} FROM turns ORDER BY at, id").fetchall()


@pytest.mark.parametrize("turns", [3, KEPT, KEPT + 1, KEPT + 5])
def test_a_conversation_with_unexpected_turns_has_the_same_score_after_restarts(tmp_path: Path, scoring: Setup, turns: int) -> None:
    pauses = [10.0] * (turns - 2) + [CONVERSATION_IDLE - 10.0] * 2
    steps = [(pause, turn(number)) for number, pause in enumerate(pauses)]
    cases = [
        [told for told in played(tmp_path / str(restarts), scoring, steps, restarts=restarts).told if isinstance(told, Case)]
        for restarts in (False, True)
    ]
    assert [(case.matched, case.missing, case.unexpected) for case in cases[0]] == [(2, 0, turns - 2)]
    assert cases[1] == cases[0]
    assert stored(tmp_path / "True", "*") == []


def test_of_turns_beyond_those_that_are_kept_the_number_alone_is_stored(tmp_path: Path, scoring: Setup) -> None:
    collector = VirtualCollector(tmp_path / "store", scoring, BOUNDS)
    collector.start()
    for number in range(KEPT + 3):
        for conversation in ("one", "another")[: 2 - number % 2]:
            collector.send([request_of(number, turn(number, conversation))])
        collector.wait(10)
    collector.commit()
    collector.crash()
    rows = stored(tmp_path / "store", "conversation, body")
    assert [(of, body) for of, body in rows if isinstance(body, bytes)] == [("one", b"3")]
    assert len(rows) == KEPT + 1 + (KEPT + 3 + 1) // 2
