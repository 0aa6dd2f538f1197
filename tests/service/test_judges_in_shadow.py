"""Judges in shadow, in every shape: beside the active ones, with their own budget and series."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from signal import SIGHUP, SIGKILL
from typing import Any

import pytest

from support.backfilled import rows
from support.judge_server import JudgeRequest, JudgeServer, Reply, answering
from support.running import PATHGAUGE, Collector, until
from support.shapes import EACH_SHAPE, Shape, started
from support.turns import otlp, script, turn

pytestmark = pytest.mark.slow

RUNS = 12
SHADOW: dict[str, Any] = {
    "criteria": {"safety_v1": {"threshold": 1.0, "model": "local:next"}, "latency": 100},
    "budget": {"calls_per_day": 100},
}
VERDICT = ("verdict", "--shadow", "--agent", "desk", "--json")
BODIES = "SELECT body FROM results"
SAFE = answering(reasoning="Nothing harmful in it.", verdict="safe")
UNSAFE = answering(reasoning="It is harmful.", verdict="unsafe")


def reply(request: JudgeRequest) -> Reply:
    """The model in shadow finds everything unsafe."""
    return UNSAFE if request.body["model"] == "next" else SAFE


def slow_in_shadow(request: JudgeRequest, seconds: float) -> Reply:
    found = reply(request)
    return found.after(seconds) if found is UNSAFE else found


@pytest.fixture
def model() -> Iterator[JudgeServer]:
    with JudgeServer(judge=reply) as server:
        yield server


def settings(model: JudgeServer, **shadow: Any) -> dict[str, Any]:
    provider = {"base_url": model.url, "api_key": "key", "allow_private": True}
    return {
        "criteria": {"latency": 100, "safety_v1": 1.0},
        "judge": {
            "model": "local:judge",
            "providers": {"local": provider},
            "timeout": "30s",
            "deadline": "60s",
        },
        "shadow": {**SHADOW, **shadow},
    }


def send(receiver: Collector, runs: int = RUNS, since: int = 0) -> None:
    for number in range(since, since + runs):
        body = otlp(turn(script("refund", answer=f"Answer {number}."), agent="desk"))
        assert until(lambda: receiver.post("/v1/traces", body)[0] == 200)  # noqa: B023


def judged(gauge: Collector, outcome: str) -> float:
    return gauge.value("pathgauge_evaluations_total", metric="safety_v1", outcome=outcome)


def in_shadow(gauge: Collector, verdict: str) -> float:
    name = "pathgauge_shadow_evaluations_total"
    return gauge.value(name, metric="safety_v1", verdict=verdict)


def asked(model: JudgeServer, name: str) -> int:
    return sum(request.body["model"] == name for request in model.requests)


def requests(shape: Shape, prefix: str) -> float:
    """What all processes count of requests to models."""
    processes = {id(one): one for one in (*shape.scorers, shape.gauge)}.values()
    return sum(one.value(f"{prefix}_requests_total", code="200") for one in processes)


@pytest.mark.parametrize("name", EACH_SHAPE)
def test_a_changed_judge_is_compared_with_the_active_one(
    name: str, tmp_path: Path, model: JudgeServer
) -> None:
    with started(name, tmp_path / "shape", settings(model)) as shape:
        gauge = shape.gauge
        assert until(shape.is_shared)
        send(shape.receiver)
        assert until(lambda: in_shadow(gauge, "failed") == RUNS)
        assert until(lambda: judged(gauge, "pass") == RUNS)
        assert judged(gauge, "fail") == 0
        changes = gauge.series("pathgauge_shadow_changes_total", "metric", "change")
        assert {key: value for key, value in changes.items() if value} == {
            ("safety_v1", "now_fails"): RUNS,
            ("latency", "same"): RUNS,
        }
        assert until(lambda: requests(shape, "pathgauge_shadow_judge") == RUNS)
        assert requests(shape, "pathgauge_judge") == RUNS
        assert (asked(model, "judge"), asked(model, "next")) == (RUNS, RUNS)
        assert until(shape.is_settled)
        done = subprocess.run(
            [PATHGAUGE, *VERDICT, "--config", gauge.config],
            capture_output=True,
            text=True,
            check=False,
        )
        verdict = json.loads(done.stdout)
        bodies = [row[-1] for row in shape.stored().results.values()]
    [metric] = [one for one in verdict["metrics"] if one["metric"] == "safety_v1"]
    assert (metric["verdict"], metric["difference"], metric["pairs"]) == ("worse", -1.0, RUNS)
    assert done.returncode == 1
    assert {body["verdict"] for body in bodies} == {"passed"}
    assert {
        one["judge"].partition("@")[0]
        for body in bodies
        for one in body["shadow"]["criteria"]
        if one["name"] == "safety_v1"
    } == {"local:next"}


def test_the_budget_of_the_shadow_is_used_up_alone(tmp_path: Path, model: JudgeServer) -> None:
    limited = settings(model, budget={"calls_per_day": 2})
    with Collector(tmp_path, **limited, store={}) as collector:
        send(collector, 4)
        assert until(lambda: in_shadow(collector, "not_evaluated") == 2)
        assert until(lambda: judged(collector, "pass") == 4)
        assert in_shadow(collector, "failed") == 2
        left = "pathgauge_shadow_judge_budget_remaining_ratio"
        assert collector.value(left, window="day", kind="calls") == 0
        assert collector.stop(SIGKILL) != 0
    with Collector(tmp_path, **limited, store={}) as again:
        send(again, 1, since=4)
        assert until(lambda: in_shadow(again, "not_evaluated") == 3)
        assert until(lambda: judged(again, "pass") == 5)
    assert (asked(model, "judge"), asked(model, "next")) == (5, 2)


def test_what_waits_for_judges_in_shadow_goes_on_after_a_kill(tmp_path: Path) -> None:
    delay_s = 20.0
    with JudgeServer(judge=lambda request: slow_in_shadow(request, delay_s)) as model:
        with Collector(tmp_path, **settings(model), store={}) as collector:
            send(collector, 3)
            assert until(lambda: judged(collector, "pass") == 3)  # not held up
            assert until(lambda: asked(model, "next") > 0)
            assert collector.stop(SIGKILL) != 0
        delay_s = 0.0
        with Collector(tmp_path, **settings(model), store={}) as again:
            assert until(lambda: in_shadow(again, "failed") == 3)
            assert judged(again, "pass") == 3
            assert asked(model, "judge") == 3


@pytest.mark.long_table
@pytest.mark.parametrize("gone", ["shadow", "judge", "shadow judge"])
def test_a_shadow_that_is_gone_after_a_restart_is_waited_for_no_longer(
    gone: str, tmp_path: Path
) -> None:
    with JudgeServer(judge=lambda request: slow_in_shadow(request, 20.0)) as model:
        with Collector(tmp_path, **settings(model), store={}) as collector:
            send(collector, 1)
            assert until(lambda: judged(collector, "pass") == 1)
            assert until(lambda: asked(model, "next") == 1)
            assert collector.stop(SIGKILL) != 0
        kept = {name: one for name, one in settings(model).items() if name not in gone.split()}
        with Collector(tmp_path, **kept, store={}) as again:
            assert until(lambda: again.value("pathgauge_shadow_errors_total") == 1)
            assert again.value("pathgauge_queue_size", queue="judges") == 0
        assert asked(model, "judge") == 1  # the active judge has answered already
    [body] = [json.loads(text) for (text,) in rows(tmp_path / "pathgauge-data", BODIES)]
    assert [one["verdict"] for one in body["criteria"] if one["name"] == "safety_v1"] == ["passed"]
    assert [one["name"] for one in body["shadow"]["criteria"]] == ["latency"]


def test_other_judges_in_shadow_are_not_asked_what_waits_for_those_before(tmp_path: Path) -> None:
    delay_s = 20.0
    with JudgeServer(judge=lambda request: slow_in_shadow(request, delay_s)) as model:
        with Collector(tmp_path, **settings(model), store={}) as collector:
            send(collector, 1)
            assert until(lambda: judged(collector, "pass") == 1)
            assert until(lambda: asked(model, "next") == 1)
            assert collector.stop(SIGKILL) != 0
        delay_s = 0.0
        other = {"safety_v1": {"threshold": 1.0, "model": "local:third"}}
        with Collector(tmp_path, **settings(model, criteria=other), store={}) as again:
            assert until(lambda: again.value("pathgauge_shadow_errors_total") == 1)
            send(again, 1, since=1)
            assert until(lambda: in_shadow(again, "passed") == 1)
        assert (asked(model, "next"), asked(model, "third")) == (1, 1)


PLAIN = {"criteria": {"latency": 100}, "budget": None}
SMALLER = {"budget": {"calls_per_day": 1}}


@pytest.mark.parametrize(
    ("before", "asked_before"), [(PLAIN, 0), (SMALLER, 1)], ids=["none", "smaller"]
)
def test_a_budget_that_a_reload_changes_applies_after_a_restart(
    tmp_path: Path, model: JudgeServer, before: dict[str, Any], asked_before: int
) -> None:
    store = {"path": "store"}
    with Collector(tmp_path, **settings(model, **before), store=store) as collector:
        collector.configure(**settings(model), store=store)
        collector.signal(SIGHUP)
        [warning] = until(
            lambda: collector.events("changed sections need a restart to take effect")
        )
        assert warning["sections"] == ["shadow.budget"]
        send(collector)
        unjudged = RUNS - asked_before
        assert until(lambda: in_shadow(collector, "not_evaluated") == unjudged)
        assert until(lambda: in_shadow(collector, "failed") == asked_before)
        collector.stop()
    with Collector(tmp_path, **settings(model), store=store) as collector:
        send(collector, since=RUNS)
        assert until(lambda: in_shadow(collector, "failed") == asked_before + RUNS)
        assert asked(model, "next") == asked_before + RUNS
