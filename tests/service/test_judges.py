"""`pathgauge serve` with a judge: the real service, the real client, and a model on loopback."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from typing import Any, Literal

import pytest

from support.judge_server import JudgeServer, answering, failing
from support.running import PATIENCE_S, Collector, until
from support.turns import otlp, script, turn

pytestmark = pytest.mark.slow

SAFE = answering(reasoning="Nothing harmful in it.", verdict="safe")
SECRET_KEY = "sk-of-nobody-else"
RIGHT = script("refund", "lookup", answer="In confidence: done.")
PATIENT = {"timeout": f"{PATIENCE_S}s", "deadline": f"{2 * PATIENCE_S}s"}
"""Waits for an answer as long as a test looks for what happens meanwhile."""


def start(
    folder: Path,
    model: JudgeServer,
    *,
    judge: dict[str, Any] | Literal[False] = {},  # noqa: B006
    **more: Any,
) -> Collector:
    provider = {"base_url": model.url, "api_key": SECRET_KEY, "allow_private": True}
    section = {
        "model": "local:judge",
        "providers": {"local": provider},
        "timeout": "5s",
        "deadline": "10s",
    }
    asked = {} if judge is False else {"judge": section | judge}
    return Collector(folder, criteria={"latency": 100, "safety_v1": 1.0}, **asked, **more)


def judged(collector: Collector, outcome: str) -> float:
    return collector.value("pathgauge_evaluations_total", metric="safety_v1", outcome=outcome)


def timed(collector: Collector) -> float:
    return collector.value("pathgauge_evaluations_total", metric="latency", outcome="pass")


def test_a_verdict_becomes_a_series_that_names_its_judge(tmp_path: Path) -> None:
    with JudgeServer(SAFE) as model, start(tmp_path, model) as collector:
        assert collector.post("/v1/traces", otlp(turn(RIGHT)))[0] == 200
        assert until(lambda: judged(collector, "pass") == 1)
        [(judge,)] = collector.series("pathgauge_score_window_mean", "judge", metric="safety_v1")
        assert judge.startswith("local:judge@")
        assert (
            collector.value("pathgauge_judge_requests_total", model="local:judge", code="200") == 1
        )
        assert collector.value("pathgauge_judge_tokens_total", model="local:judge") == 120
        assert collector.value("pathgauge_queue_capacity", queue="judges") == 1008
        [asked] = model.requests
        assert asked.data["response"] == "In confidence: done."
        log = (tmp_path / "log.jsonl").read_text()
        assert "In confidence" not in log
        assert SECRET_KEY not in log


def test_what_waits_for_a_judge_is_judged_after_a_crash_and_counted_once(tmp_path: Path) -> None:
    with JudgeServer(SAFE.after(PATIENCE_S)) as model:
        collector = start(tmp_path, model, judge=PATIENT, store={})
        assert collector.post("/v1/traces", otlp(turn(RIGHT), turn(RIGHT)))[0] == 200
        assert until(lambda: timed(collector) == 2)
        assert judged(collector, "pass") == 0
        collector.stop(SIGKILL)
        model.then(SAFE)
        with start(tmp_path, model, judge=PATIENT, store={}) as again:
            assert until(lambda: judged(again, "pass") == 2)
            assert (timed(again), again.value("pathgauge_queue_size", queue="judges")) == (2, 0)
            assert judged(again, "pass") == 2


def test_budgets_go_on_after_a_crash(tmp_path: Path) -> None:
    budget = {"budget": {"calls_per_day": 2}}
    with JudgeServer(SAFE) as model:
        with start(tmp_path, model, judge=budget, store={}) as collector:
            for answer in ("one", "two"):
                assert (
                    collector.post("/v1/traces", otlp(turn(script("refund", answer=answer))))[0]
                    == 200
                )
            assert until(lambda: judged(collector, "pass") == 2)
            assert (
                collector.value(
                    "pathgauge_judge_budget_remaining_ratio", window="day", kind="calls"
                )
                == 0
            )
            collector.stop(SIGKILL)
        with start(tmp_path, model, judge=budget, store={}) as again:
            assert again.post("/v1/traces", otlp(turn(script("refund", answer="three"))))[0] == 200
            assert until(
                lambda: (
                    again.value(
                        "pathgauge_not_evaluated_total", metric="safety_v1", reason="budget"
                    )
                    == 1
                )
            )
        assert len(model.requests) == 2


@pytest.mark.parametrize("signal", [SIGKILL, SIGTERM])
def test_a_question_without_an_answer_is_paid_for_after_a_restart_too(
    tmp_path: Path, signal: Signals
) -> None:
    budget = {"budget": {"calls_per_day": 1}}
    waits = PATIENT if signal == SIGKILL else {}
    with JudgeServer(SAFE.after(2 * PATIENCE_S)) as model:
        collector = start(tmp_path, model, judge=budget | waits, store={})
        assert collector.post("/v1/traces", otlp(turn(RIGHT)))[0] == 200
        assert until(lambda: model.requests)
        if signal == SIGKILL:
            assert until(lambda: spent(tmp_path) == 1, 20)  # before anything else has a commit
        collector.stop(signal)
        with start(tmp_path, model, judge=budget, store={}) as again:
            assert until(
                lambda: (
                    again.value(
                        "pathgauge_not_evaluated_total", metric="safety_v1", reason="budget"
                    )
                    == 1
                )
            )
        assert len(model.requests) == 1


def spent(folder: Path) -> float:
    """Today's judge calls according to the store."""
    with closing(sqlite3.connect(folder / "pathgauge-data" / "pathgauge.db")) as store:
        rows = store.execute(
            "SELECT state FROM counts WHERE name = ?", ('["judge_spent","day"]',)
        ).fetchall()
    return float(json.loads(rows[0][0])[1]) if rows else 0.0


def test_a_judge_that_fails_touches_nothing_else(tmp_path: Path) -> None:
    with (
        JudgeServer(failing(500)) as model,
        start(tmp_path, model, judge={"retries": 1, "timeout": "1s"}) as collector,
    ):
        assert collector.post("/v1/traces", otlp(turn(RIGHT)))[0] == 200
        assert until(
            lambda: (
                collector.value("pathgauge_not_evaluated_total", reason="judge_unavailable") == 1
            )
        )
        assert (
            timed(collector),
            judged(collector, "not_evaluated"),
            judged(collector, "fail"),
        ) == (1, 1, 0)
        assert collector.get("/readyz")[0] == 200
        [failure] = collector.events("a judge has no answer")
        told = {name: failure[name] for name in ("model", "reason", "error")}
        assert told == {
            "model": "local:judge",
            "reason": "judge_unavailable",
            "error": "the server failed: HTTP 500: it failed",
        }


def test_without_a_judge_the_service_says_so_and_scores_the_rest(tmp_path: Path) -> None:
    with JudgeServer(SAFE) as model, start(tmp_path, model, judge=False) as collector:
        assert collector.post("/v1/traces", otlp(turn(RIGHT)))[0] == 200
        assert until(
            lambda: (
                collector.value("pathgauge_not_evaluated_total", reason="judge_unconfigured") == 1
            )
        )
        assert until(lambda: timed(collector) == 1)
        assert any("safety_v1" in line.get("warning", "") for line in collector.log())
