"""An invocation is counted as failed once, by whichever of its criteria fails first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.cost.usage import ToolCalls
from pathgauge.scorers.responses.phrases import ResponseContains
from pathgauge.scorers.tool_use.tools import RequiredTools
from pathgauge.scorers.types import Scorer
from support.judged import JUDGED, InProcessCollector, Model, request, run_of, tool_of
from support.running import until

Live = Callable[..., InProcessCollector]
CRITERIA = (Criterion("polite", ResponseContains(("please",)), 1.0), JUDGED)
BAD = 0.0


@pytest.fixture
def live() -> Iterator[Live]:
    """Starts collectors, and stops them at the end of the test."""
    lives: list[InProcessCollector] = []

    def live(*given: Any, **options: Any) -> InProcessCollector:
        lives.append(InProcessCollector(*given, **{"criteria": CRITERIA, **options}))
        return lives[-1]

    yield live
    for life in lives:
        life.end()


def failures(life: InProcessCollector) -> float:
    return sum(
        sample.value
        for metric in life.prometheus.registry.collect()
        for sample in metric.samples
        if sample.name == "pathgauge_failures_total"
    )


async def send(life: InProcessCollector, *spans: Any) -> None:
    await life.send(request(*spans))
    life.pass_time(6)


def judged(life: InProcessCollector) -> bool:
    return bool(until(lambda: life.counted("fail") == 1))


@pytest.mark.parametrize("response", ["No.", "please wait"])
async def test_a_judge_adds_a_failure_only_to_what_had_passed(live: Live, response: str) -> None:
    life = live(Model(BAD))
    await send(life, run_of("a", response=response))
    assert judged(life)
    assert failures(life) == 1


@pytest.mark.parametrize("response", ["No.", "please wait"])
async def test_a_restart_before_the_judge_answers_changes_nothing(
    live: Live, tmp_path: Path, response: str
) -> None:
    model = Model()
    life = live(model, tmp_path)
    model.hold()
    await send(life, run_of("a", response=response))
    assert until(lambda: life.queue.waiting == 1)
    life.end()
    life = live(Model(BAD), tmp_path)
    assert judged(life)
    assert failures(life) == 1


@pytest.mark.parametrize(
    ("scorer", "threshold", "counted"),
    [(RequiredTools(("look_up",)), 1.0, 1), (ToolCalls(), 1.0, 0)],
    ids=["the revision passes", "the revision fails"],
)
async def test_a_revision_before_the_judge_answers_changes_nothing(
    live: Live, scorer: Scorer, threshold: float, counted: int
) -> None:
    model = Model(BAD)
    life = live(model, criteria=(Criterion("tools", scorer, threshold), JUDGED))
    model.hold()
    await send(life, run_of("a"), tool_of("a", "other"))
    assert until(lambda: len(model.asked) == 1)
    await send(life, tool_of("a"))
    assert until(lambda: len(model.asked) == 2)
    assert until(lambda: failures(life) == counted)
    model.answer()
    assert judged(life)
    assert failures(life) == 1
