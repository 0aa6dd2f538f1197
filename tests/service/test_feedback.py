"""Feedback with real processes, in every shape: it arrives by OTLP, by the API and by the button,
is stored durably, and its agreement with criteria is on /metrics.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.testing import log, span, span_id, trace_id
from support.running import PATHGAUGE, Collector, until
from support.shapes import EACH_SHAPE, Shape, started

pytestmark = pytest.mark.slow

SETTINGS: dict[str, Any] = {
    "criteria": {"failure": 0.0, "tool_calls": None, "session_turns": 1},
    "sessions": {"idle": "1h", "settle": "300ms"},
    "assembly": {"settle": "300ms", "idle": "600ms", "max_age": "60s", "late_ttl": "60s"},
    "feedback": {"min_pairs": 2},
}
KAPPA = "pathgauge_feedback_kappa"


@pytest.fixture(params=EACH_SHAPE)
def shape(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shape]:
    with started(request.param, tmp_path / "shape", SETTINGS) as running:
        yield running


def send(receiver: Collector, signal: str, body: bytes) -> None:
    """Send until it is accepted, as exporters do."""
    assert until(lambda: receiver.post(f"/v1/{signal}", body)[0] == 200)


def run(name: str, *, failed: bool = False) -> bytes:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
    return encode_request(
        [span(name, "invoke_agent support", attributes, trace=name, error="no" if failed else None)]
    )


def human(name: str, value: float, **attributes: Any) -> bytes:
    return encode_request(
        [
            log(
                "gen_ai.evaluation.result",
                {
                    "gen_ai.evaluation.name": "helpful",
                    "gen_ai.evaluation.score.value": value,
                    "microsoft.gen_ai.evaluation.actor.type": "human",
                    **attributes,
                },
                trace=name,
                span=name,
                time=5.0,
            )
        ]
    )


def posted(collector: Collector, name: str, **fields: Any) -> tuple[int, Any]:
    body = {"trace_id": trace_id(name), "span_id": span_id(name), **fields}
    status, text = collector.post_page("/api/v1/feedback", json.dumps(body).encode())
    return status, json.loads(text)


def answers(collector: Collector, name: str) -> list[tuple[str, bool | None]]:
    _, text = collector.get(f"/api/v1/feedback?trace_id={trace_id(name)}")
    return [(one["source"], one["passed"]) for one in json.loads(text)["answers"]]


def test_people_and_criteria_are_compared(shape: Shape) -> None:
    receiver, gauge = shape.receiver, shape.gauge
    for number in range(6):
        body = run(f"run {number}", failed=number % 2 == 1)
        send(receiver, "traces", body)
    # One by OTLP, before its trace is read; others by the API, some for runs that nobody has seen.
    send(receiver, "logs", human("run 0", 1.0))
    send(receiver, "logs", human("run 1", 0.0))
    assert posted(gauge, "run 2", thumb="up", id="a") == (201, {"outcome": "created"})
    assert posted(gauge, "run 2", thumb="up", id="a") == (200, {"outcome": "repeated"})
    assert posted(gauge, "run 3", thumb="up", rater="ann")[0] == 201
    assert posted(gauge, "run 3", thumb="down", rater="ann") == (200, {"outcome": "replaced"})
    assert posted(gauge, "unknown", thumb="down")[0] == 201
    assert until(
        lambda: gauge.series("pathgauge_feedback_pairs", "metric") == {("failure",): 4.0}
    ), gauge.get("/metrics")[1]
    assert gauge.series(KAPPA, "metric") == {("failure",): 1.0}
    [lower] = gauge.series(f"{KAPPA}_lower", "metric").values()
    assert -1 < lower < 1
    states = gauge.series("pathgauge_feedback_answers", "state")
    assert {state: number for (state,), number in states.items() if number} == {
        "paired": 4.0,
        "waiting": 1.0,
    }
    assert answers(gauge, "run 0") == [("gen_ai", True)]
    assert answers(gauge, "run 3") == [("api", False)]


def talk(name: str, turns: int, *, ends: bool = True, label: str = "") -> bytes:
    """The turns of a conversation. The last one may have an answer about all of it."""
    spans = []
    for number in range(turns):
        turn = f"{name} {number}"
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "support",
            "session.id": name,
        }
        if number == turns - 1:
            attributes |= {"pathgauge.session.end": "resolved"} if ends else {}
            attributes |= about_session("annotator_kind", "HUMAN") if label else {}
            attributes |= about_session("label", label) if label else {}
        spans.append(
            span(turn, "invoke_agent support", attributes, trace=turn, start=float(number))
        )
    return encode_request(spans)


def about_session(field: str, value: str) -> dict[str, str]:
    return {f"session.annotations.0.annotation.{field}": value}


def test_conversations_are_compared_with_their_sessions(shape: Shape) -> None:
    receiver, gauge = shape.receiver, shape.gauge
    for body in (
        talk("short", 1, label="thumbs_up"),
        talk("long", 2),
        talk("bad", 1),
        talk("open", 1, ends=False, label="thumbs_up"),
    ):
        send(receiver, "traces", body)
    # The spans are those of 1970.
    said = {"thumb": "down", "time": "1970-01-01T00:00:02Z"}
    for name in ("long", "bad"):
        status, text = gauge.post_page(
            "/api/v1/feedback", json.dumps({"conversation_id": name, **said}).encode()
        )
        assert status == 201, text
    # Scorers may read the two turns of a session in any order, and the first one alone.
    assert until(lambda: agreed(gauge) == ([1, 0, 1, 1], {"paired": 3, "waiting": 1})), agreed(
        gauge
    )
    shown = {("session_turns",): 3.0}
    assert until(lambda: gauge.series("pathgauge_feedback_pairs", "metric") == shown), gauge.get(
        "/metrics"
    )[1]


def test_an_answer_finds_the_session_whose_id_is_hashed_with_a_random_salt(tmp_path: Path) -> None:
    with Collector(tmp_path, **SETTINGS, redaction={}, store={}) as running:
        send(running, "traces", talk("ann@example.org", 1))
        said = {"thumb": "up", "time": "1970-01-01T00:00:02Z"}
        body = json.dumps({"conversation_id": "ann@example.org", **said}).encode()
        assert running.post_page("/api/v1/feedback", body)[0] == 201
        assert until(lambda: agreed(running)[1] == {"paired": 1}), agreed(running)
        [found] = about_conversation(running, "ann@example.org")
        assert "ann" not in found["conversation_id"]
        assert about_conversation(running, found["conversation_id"]) == [found]
        assert about_conversation(running, "bob@example.org") == []


def about_conversation(collector: Collector, name: str) -> list[dict[str, Any]]:
    _, text = collector.get(f"/api/v1/feedback?{urlencode({'conversation_id': name})}")
    found: list[dict[str, Any]] = json.loads(text)["answers"]
    return found


def agreed(collector: Collector) -> tuple[list[int], dict[str, int]]:
    """How often both, people only, the criterion only and none of them said pass; the states."""
    found = json.loads(collector.get("/api/v1/agreement")[1])
    names = ("both_passed", "only_people_passed", "only_metric_passed", "neither_passed")
    return [one[name] for one in found["metrics"] for name in names], found["answers"]


def test_feedback_about_a_purged_trace_is_refused(shape: Shape) -> None:
    receiver, gauge = shape.receiver, shape.gauge
    send(receiver, "traces", run("secret"))
    assert posted(gauge, "secret", thumb="up")[0] == 201
    assert until(lambda: gauge.get(f"/api/v1/results/{trace_id('secret')}")[0] == 200)
    purge = [str(PATHGAUGE), "purge", "--config", str(gauge.config), "--trace", trace_id("secret")]
    subprocess.run(purge, check=True, capture_output=True)
    status, problem = posted(gauge, "secret", thumb="up")
    assert (status, problem["title"]) == (410, "Gone")
    assert answers(gauge, "secret") == []
    assert posted(gauge, "other", thumb="up")[0] == 201


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    with Collector(tmp_path, **SETTINGS, store={}) as running:
        assert running.post("/v1/logs", human("run", 0.0))[0] == 200
        assert posted(running, "run", thumb="up", rater="bob")[0] == 201
        running.stop(signal.SIGKILL)
    with Collector(tmp_path, **SETTINGS, store={}) as running:
        assert until(lambda: len(answers(running, "run")) == 2)
        assert sorted(answers(running, "run")) == [("api", True), ("gen_ai", False)]
        assert running.post("/v1/logs", human("run", 0.0))[0] == 200
        assert until(lambda: running.value("pathgauge_feedback_read_total") == 2)
        assert len(answers(running, "run")) == 2
