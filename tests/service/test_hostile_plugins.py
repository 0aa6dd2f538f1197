"""A plug-in shares the process with the service. What it prints, and what it does to the state of
the process, breaks no log, no path and no score.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.running import Collector, until
from support.turns import otlp, script, trace_id, turn

SCORED = "pathgauge_invocations_scored_total"
CODE = '''
import decimal, gc, locale, logging, logging.config, os, random, sys, time, warnings
from dataclasses import dataclass
from typing import ClassVar

from pathgauge import Score


def meddle(when):
    print(f"to stdout {when}")
    print(f"to stderr {when}", file=sys.stderr)
    logging.disable(logging.CRITICAL)
    logging.config.dictConfig({"version": 1})
    logging.basicConfig(force=True, format="PLAIN %(message)s", level="DEBUG")
    logging.getLogger("acme").error(f"logged {when}")
    os.chdir("/")
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    warnings.simplefilter("error")
    random.seed(1)
    decimal.getcontext().prec = 1
    decimal.getcontext().traps[decimal.Inexact] = True
    gc.disable()
    sys.setrecursionlimit(150)


meddle("at import")


@dataclass(frozen=True)
class Meddling:
    """A scorer."""

    name: ClassVar[str] = "meddling"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    def score(self, actual, expected):
        meddle("while it scores")
        return Score(0.5)
'''


BROKEN = """
def inner(text):
    return {}[text]


def broken(invocation):
    return inner(invocation.user_input)
"""


SLOW = """
import time


def slow(invocation):
    time.sleep(0.25)
    return 1.0
"""


NUMBERS = """
import numpy as np

from pathgauge import Score


def share(invocation):
    return Score(np.float32(0.5), None, "half", {"calls": np.int64(2)})
"""


def scored_by(scorer: str, folder: Path, **shape: Any) -> Collector:
    """A collector with this scorer, which is named as its function."""
    name = scorer.partition(":")[2]
    criteria = {name: {"scorer": scorer}, "failure": 0}
    return Collector(folder, criteria=criteria, store={"path": str(folder / "data")}, **shape)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [{}, {"workers": 2}])
def test_what_a_plug_in_prints_and_changes_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: dict[str, Any]
) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "acme_meddling.py").write_text(CODE)
    references = tmp_path / "references.yaml"
    references.write_text("scenario: refund\nexpected_tools: [lookup]\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    monkeypatch.chdir(tmp_path)
    settings: dict[str, Any] = {
        "criteria": {
            "meddling": {"scorer": "acme_meddling:Meddling"},
            "tool_trajectory_avg_score": 1.0,
        },
        "references": ["references.yaml"],
        "store": {"path": "data"},
        **shape,
    }
    with Collector(Path(), **settings) as collector:
        for number in (1, 2):
            agent = list(turn(script("refund", "lookup")))
            assert collector.post("/v1/traces", otlp(agent)) == (200, "")
            assert until(lambda number=number: collector.value(SCORED) == number)  # type: ignore[misc]
        assert collector.series("pathgauge_evaluations_total", "metric", "outcome") == {
            ("meddling", "informational"): 2,
            ("meddling", "error"): 0,
            ("meddling", "not_evaluated"): 0,
            ("tool_trajectory_avg_score", "pass"): 2,
            ("tool_trajectory_avg_score", "fail"): 0,
            ("tool_trajectory_avg_score", "error"): 0,
            ("tool_trajectory_avg_score", "not_evaluated"): 0,
        }
        status, answer = collector.get("/api/v1/results?scenario=refund")
        assert (status, answer.count('"trace_id"')) == (200, 2)
        references.write_text("scenario: other\nexpected_tools: []\n")
        assert until(lambda: collector.events("reloaded"))
    printed = {(line["stream"], line["text"]) for line in collector.events("printed")}
    assert printed == {
        *(("stdout", f"to stdout {when}") for when in ("at import", "while it scores")),
        *(("stderr", f"to stderr {when}") for when in ("at import", "while it scores")),
    }
    assert collector.log()[-1]["event"] == "stopped"


@pytest.mark.slow
@pytest.mark.parametrize("shape", [{}, {"workers": 2}])
def test_the_log_says_once_where_a_scorer_failed_and_nothing_of_the_telemetry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: dict[str, Any]
) -> None:
    (tmp_path / "acme_broken.py").write_text(BROKEN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with scored_by("acme_broken:broken", tmp_path, **shape) as collector:
        agent = list(turn(script("refund", "lookup", user_input="my number is 4711")))
        other = list(turn(script("refund", "lookup"), conversation="other"))
        assert collector.post("/v1/traces", otlp(agent)) == (200, "")
        assert until(lambda: collector.value(SCORED) == 1)
        assert collector.post("/v1/traces", otlp(other)) == (200, "")
        assert until(lambda: collector.value(SCORED) == 2)
    lines = collector.events("scorer failed")
    assert len(lines) in {1, shape.get("workers", 1)}
    assert (lines[0]["metric"], lines[0]["trace_id"]) == ("broken", trace_id(agent))
    stack = lines[0]["exception"].splitlines()
    assert f'  File "{tmp_path}/acme_broken.py", line 3, in inner' in stack
    assert (stack[-1], stack.count("which led to")) == ("KeyError", 0)
    assert "4711" not in json.dumps(collector.log())


@pytest.mark.slow
@pytest.mark.parametrize("shape", [{}, {"workers": 2}])
def test_the_time_of_each_criterion_shows_which_one_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: dict[str, Any]
) -> None:
    (tmp_path / "acme_slow.py").write_text(SLOW)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    name = "pathgauge_scoring_seconds_total"
    with scored_by("acme_slow:slow", tmp_path, **shape) as collector:
        assert until(lambda: set(collector.series(name, "metric")) == {("slow",), ("failure",)})
        for conversation in ("one", "two"):
            agent = list(turn(script("refund", "lookup"), conversation=conversation))
            assert collector.post("/v1/traces", otlp(agent)) == (200, "")
        assert until(lambda: collector.value(name, metric="slow") >= 0.5)
        assert collector.value(name, metric="failure") < collector.value(name, metric="slow") / 2


@pytest.mark.slow
@pytest.mark.parametrize("shape", [{}, {"workers": 2}])
def test_numbers_of_other_libraries_are_stored_like_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: dict[str, Any]
) -> None:
    (tmp_path / "acme_numbers.py").write_text(NUMBERS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with scored_by("acme_numbers:share", tmp_path, **shape) as collector:
        agent = list(turn(script("refund", "lookup")))
        assert collector.post("/v1/traces", otlp(agent)) == (200, "")
        assert until(lambda: collector.value(SCORED) == 1)
        status, answer = collector.get("/api/v1/results")
        (result,) = json.loads(answer)["results"]
        scores = {one["name"]: one["value"] for one in result["criteria"]}
        assert (status, scores) == (200, {"share": 0.5, "failure": 0.0})
