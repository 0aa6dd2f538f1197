"""Sessions of a running collector: scored when they end, and once, whatever happens to it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.testing import span, trace_id
from support.running import PATHGAUGE, Collector, until

CRITERIA = {
    "session_turns": 3,
    "session_tokens": None,
    "session_resolved": 1.0,
    "repeated_questions": 0.2,
    "mean_calls": {"scorer": "mean_of_turns", "of": "tool_calls"},
    "tool_calls": None,
}
SESSIONS = {"idle": "60s", "settle": "300ms", "reopen": "1h"}


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


def start(folder: Path, **options: Any) -> Collector:
    return Collector(
        folder,
        **{"store": {}, "criteria": CRITERIA, "sessions": SESSIONS, **options},
    )


def send(collector: Collector, *spans: list[Span]) -> None:
    for one in spans:
        assert collector.post("/v1/traces", encode_request(one))[0] == 200


def mean(collector: Collector, metric: str) -> float:
    return collector.value("pathgauge_score_window_mean", metric=metric)


def ended(collector: Collector) -> float:
    return sum(collector.series("pathgauge_sessions_ended_total", "reason").values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"store": "memory"}, {"workers": 2}],
    ids=["disk", "memory", "workers"],
)
def test_a_session_that_signals_its_end_is_scored_as_a_whole(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    with start(tmp_path, **options) as collector:
        send(collector, turn(0, "a"), turn(1, "a"), turn(2, "a", ends="resolved"))
        assert until(lambda: ended(collector) == 1)
        assert until(lambda: mean(collector, "session_turns") == 3)
        assert mean(collector, "session_tokens") == 9
        assert mean(collector, "session_resolved") == 1
        assert mean(collector, "repeated_questions") == pytest.approx(2 / 3)
        assert mean(collector, "mean_calls") == 1
        passed = {"metric": "session_turns", "outcome": "pass"}
        assert collector.value("pathgauge_evaluations_total", **passed) == 1
        assert collector.value("pathgauge_invocations_total", status="ok") == 3


@pytest.mark.slow
def test_sessions_are_listed_with_their_conversation_and_their_turns(tmp_path: Path) -> None:
    collector = start(tmp_path)
    send(collector, turn(0, "a"), turn(1, "a", ends="escalated"))
    assert until(lambda: mean(collector, "session_turns") == 2)
    collector.stop()
    command = [str(PATHGAUGE), "results", "--criterion", "session_resolved", "--json"]
    done = subprocess.run(
        [*command, "--config", collector.config], capture_output=True, text=True, check=True
    )
    [line] = done.stdout.splitlines()
    found = json.loads(line)
    assert found["verdict"] == "failed"
    assert found["session"]["conversation_id"] == "a"
    assert found["session"]["ended_by"] == "signal"
    traces = [one["trace_id"] for one in found["session"]["turns"]]
    assert traces == [trace_id("a 0"), trace_id("a 1")]


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_session_is_purged_with_any_of_its_traces(tmp_path: Path, workers: int) -> None:
    with start(tmp_path, workers=workers) as collector:
        send(collector, turn(0, "a"), turn(1, "a", ends="resolved"), turn(0, "b"))
        assert until(lambda: ended(collector) == 1)
        assert until(lambda: mean(collector, "session_turns") == 2)
        done = subprocess.run(
            [PATHGAUGE, "purge", "--trace", trace_id("a 0"), "--config", collector.config],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not collector.series("pathgauge_score_window_mean", "metric", metric="session_turns")
        send(collector, turn(2, "a", ends="resolved"), turn(1, "b", ends="resolved"))
        assert until(lambda: ended(collector) == 3)
        assert until(lambda: mean(collector, "session_turns") == 1.5)
