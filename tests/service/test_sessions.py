"""Sessions of running collectors, in every shape: scored when they end, and once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.partitioning import partition_of_session
from pathgauge.collector.testing import span, trace_id
from support.running import PATHGAUGE, Collector, until
from support.shapes import EACH_SHAPE, PARTITIONS, Shape, started

pytestmark = pytest.mark.slow

CRITERIA = {
    "session_turns": 3,
    "session_tokens": None,
    "session_resolved": 1.0,
    "repeated_questions": 0.2,
    "mean_calls": {"scorer": "mean_of_turns", "of": "tool_calls"},
    "tool_calls": None,
}
SETTINGS: dict[str, Any] = {
    "criteria": CRITERIA,
    "sessions": {"idle": "60s", "settle": "300ms", "reopen": "1h"},
}
PATIENCE_S = 60.0
"""Longer than Kafka waits for a scorer that is gone."""


def turn(number: int, conversation: str, *, ends: str | None = None) -> list[Span]:
    name = f"{conversation} {number}"
    agent: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
        "gen_ai.conversation.id": conversation,
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": "Where is my secret order?"}]}]
        ),
    }
    if ends is not None:
        agent["pathgauge.session.end"] = ends
    tokens = {"gen_ai.usage.input_tokens": 2, "gen_ai.usage.output_tokens": 1}
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **tokens}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"}
    start = 10.0 * number
    return [
        span(name, "invoke_agent support", agent, trace=name, start=start, end=start + 5),
        span(f"{name}/m", "chat m", model, trace=name, parent=name, start=start + 1),
        span(f"{name}/t", "execute_tool look_up", tool, trace=name, parent=name, start=start + 2),
    ]


@pytest.fixture(params=EACH_SHAPE)
def shape(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shape]:
    with started(request.param, tmp_path / "shape", SETTINGS) as running:
        yield running


def start(folder: Path, **options: Any) -> Collector:
    return Collector(folder, **{**SETTINGS, "store": {}, **options})


def command(collector: Collector, *words: str) -> str:
    """What a command on the store of a collector prints."""
    done = subprocess.run(
        [PATHGAUGE, *words, "--config", collector.config],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def send(collector: Collector, *spans: list[Span]) -> None:
    for one in map(encode_request, spans):
        assert until(lambda: collector.post("/v1/traces", one)[0] == 200)  # noqa: B023


def mean(collector: Collector, metric: str) -> float:
    return collector.value("pathgauge_score_window_mean", metric=metric)


def ended(collector: Collector) -> float:
    return sum(collector.series("pathgauge_sessions_ended_total", "reason").values())


def kept_turns(shape: Shape) -> int:
    """How many turns of sessions are stored to be continued."""
    return sum(number for (number,) in shape.select("SELECT count(*) FROM session_turns"))


def soon(check: Callable[[], bool]) -> bool:
    return until(check, PATIENCE_S)


def is_scored_as_a_whole(receiver: Collector, gauge: Collector) -> None:
    send(receiver, turn(0, "a"), turn(1, "a"), turn(2, "a", ends="resolved"))
    assert soon(lambda: ended(gauge) == 1)
    assert soon(lambda: mean(gauge, "session_turns") == 3)
    assert mean(gauge, "session_tokens") == 9
    assert mean(gauge, "session_resolved") == 1
    assert mean(gauge, "repeated_questions") == pytest.approx(2 / 3)
    assert mean(gauge, "mean_calls") == 1
    passed = {"metric": "session_turns", "outcome": "pass"}
    assert gauge.value("pathgauge_evaluations_total", **passed) == 1
    assert soon(lambda: gauge.value("pathgauge_invocations_total", status="ok") == 3)


def test_a_session_that_signals_its_end_is_scored_as_a_whole(shape: Shape) -> None:
    is_scored_as_a_whole(shape.receiver, shape.gauge)


def test_a_session_in_memory_is_scored_as_a_whole(tmp_path: Path) -> None:
    with start(tmp_path, store="memory") as collector:
        is_scored_as_a_whole(collector, collector)


def test_sessions_are_listed_with_their_conversation_and_their_turns(shape: Shape) -> None:
    send(shape.receiver, turn(0, "a"), turn(1, "a", ends="escalated"))
    assert soon(lambda: mean(shape.gauge, "session_turns") == 2)
    listed = command(shape.gauge, "results", "--criterion", "session_resolved", "--json")
    [line] = listed.splitlines()
    found = json.loads(line)
    assert found["verdict"] == "failed"
    assert found["session"]["conversation_id"] == "a"
    assert found["session"]["ended_by"] == "signal"
    traces = [one["trace_id"] for one in found["session"]["turns"]]
    assert traces == [trace_id("a 0"), trace_id("a 1")]


@pytest.mark.long_table
@pytest.mark.parametrize("workers", [(1, 1, 1), (2, 2, 2), (1, 2, 3), (3, 2, 1)], ids=str)
def test_a_session_goes_on_after_a_kill_and_is_counted_once_when_it_is_opened_again(
    tmp_path: Path, workers: tuple[int, int, int]
) -> None:
    first, second, third = workers
    collector = start(tmp_path, workers=first)
    send(collector, turn(0, "a"), turn(1, "a"))
    assert until(lambda: collector.value("pathgauge_invocations_scored_total") == 2)
    assert collector.stop(SIGKILL) != 0
    collector = start(tmp_path, workers=second)
    send(collector, turn(2, "a", ends="resolved"))
    assert until(lambda: ended(collector) == 1)
    assert until(lambda: mean(collector, "session_turns") == 3)
    assert collector.stop(SIGKILL) != 0
    with start(tmp_path, workers=third) as again:
        assert mean(again, "session_turns") == 3
        send(again, turn(3, "a", ends="escalated"))
        assert until(lambda: again.value("pathgauge_session_revisions_total") == 1)
        assert until(lambda: mean(again, "session_turns") == 4)
        assert mean(again, "session_resolved") == 0
        assert ended(again) == 1
        scored = {"metric": "session_turns", "outcome": "pass"}
        assert again.value("pathgauge_evaluations_total", **scored) == 1


def test_a_session_moves_to_another_scorer_of_the_cluster_when_its_own_is_killed(
    tmp_path: Path,
) -> None:
    with started("cluster", tmp_path / "shape", SETTINGS, scorers=3) as shape:
        gauge = shape.gauge
        owned = partition_of_session("", "a", PARTITIONS)
        assert soon(shape.is_shared)
        send(shape.receiver, turn(0, "a"), turn(1, "a"))
        assert soon(lambda: kept_turns(shape) == 2)
        assert shape.partitions()[owned].stop(SIGKILL) != 0  # while the session is open
        send(shape.receiver, turn(2, "a", ends="resolved"))
        assert soon(lambda: ended(gauge) == 1)
        assert soon(lambda: mean(gauge, "session_turns") == 3)
        assert shape.partitions()[owned].stop(SIGKILL) != 0  # while it can be opened again
        send(shape.receiver, turn(3, "a", ends="escalated"))
        assert soon(lambda: gauge.value("pathgauge_session_revisions_total") == 1)
        assert soon(lambda: mean(gauge, "session_turns") == 4)
        assert mean(gauge, "session_resolved") == 0
        assert ended(gauge) == 1
        scored = {"metric": "session_turns", "outcome": "pass"}
        assert gauge.value("pathgauge_evaluations_total", **scored) == 1
        assert gauge.value("pathgauge_invocations_total", status="ok") == 4


def test_a_session_is_purged_with_any_of_its_traces(shape: Shape) -> None:
    receiver, gauge = shape.receiver, shape.gauge
    send(receiver, turn(0, "a"), turn(1, "a", ends="resolved"), turn(0, "b"))
    assert soon(lambda: ended(gauge) == 1)
    assert soon(lambda: mean(gauge, "session_turns") == 2)
    assert soon(lambda: kept_turns(shape) == 3)
    command(gauge, "purge", "--trace", trace_id("a 0"))
    of_sessions = {"metric": "session_turns"}
    assert soon(lambda: not gauge.series("pathgauge_score_window_mean", "metric", **of_sessions))
    send(receiver, turn(2, "a", ends="resolved"), turn(1, "b", ends="resolved"))
    assert soon(lambda: ended(gauge) == 3)
    assert soon(lambda: mean(gauge, "session_turns") == 1.5)
