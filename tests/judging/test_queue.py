"""Judges beside the pipeline: each evaluation is judged once and later, and delays nothing else."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.judging.queue import Capacity
from pathgauge.collector.judging.sampling import Sampling
from pathgauge.collector.store import Selection
from pathgauge.collector.store.sqlite.files import DATABASE
from pathgauge.collector.testing import span_id, trace_id
from pathgauge.scorers.tool_use.errors import ToolErrorRate
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn
from support.judged import (
    JUDGED,
    WORKS,
    DueOpinion,
    InProcessCollector,
    Model,
    request,
    run_of,
    tool_of,
)
from support.running import until

Live = Callable[..., InProcessCollector]


@pytest.fixture
def live() -> Iterator[Live]:
    """Starts collectors, and stops them at the end of the test."""
    lives: list[InProcessCollector] = []

    def live(*given: Any, **options: Any) -> InProcessCollector:
        lives.append(InProcessCollector(*given, **options))
        return lives[-1]

    yield live
    for life in lives:
        life.end()


def publishes(life: InProcessCollector, *expected: tuple[Any, ...]) -> bool:
    """Wait until the sinks have published exactly this."""
    return bool(until(lambda: life.sink.published == list(expected)))


def publishes_times(life: InProcessCollector, times: int) -> bool:
    """Wait until the sinks have published this number of results."""
    return bool(until(lambda: len(life.sink.published) == times))


def waits(life: InProcessCollector, number: int) -> bool:
    """Wait until the judges have taken this number of evaluations."""
    return bool(until(lambda: life.queue.waiting == number))


PUBLISHED = {"failure": 0.0}


async def test_other_scores_do_not_wait_for_the_judge(live: Live) -> None:
    model = Model(0.75)
    life = live(model)
    model.hold()
    await life.send(request(run_of("a")))
    life.pass_time(6)
    assert publishes(life, ("published", "a", PUBLISHED)), life.sink.published
    assert until(lambda: life.queue.waiting == 1)
    model.answer()
    assert publishes(life, ("published", "a", PUBLISHED), ("judged", "a", {"opinion": 0.75})), (
        life.sink.published
    )
    assert (life.counted("pass"), life.counted("fail"), life.queue.waiting) == (1, 0, 0)


async def test_the_judged_scores_have_a_window_of_their_own(live: Live) -> None:
    model = Model(0.25)
    life = live(model)
    model.hold()
    spans = [
        run_of("a", trace=f"t{number}", start=number) for number in range(150)
    ]  # more than a window holds
    await life.send(request(*spans))
    life.pass_time(200)
    assert publishes_times(life, 150)
    model.answer()
    assert publishes_times(life, 300)
    means = {
        s.labels["metric"]: s.value
        for m in life.prometheus.shown.collect()
        for s in m.samples
        if s.name == "pathgauge_score_window_mean"
    }
    samples = {
        s.labels["metric"]: s.value
        for m in life.prometheus.shown.collect()
        for s in m.samples
        if s.name == "pathgauge_score_window_samples"
    }
    assert (means, samples) == ({"failure": 0.0, "opinion": 0.25}, {"failure": 100, "opinion": 100})


async def test_what_waits_is_judged_by_the_next_process_and_counted_once(
    live: Live, tmp_path: Path
) -> None:
    model = Model(1.0)
    life = live(model, tmp_path)
    model.hold()
    await life.send(request(run_of("a"), run_of("b")))
    life.pass_time(6)
    assert until(lambda: len(model.asked) == 2)
    life.end()
    model.answer()
    life = live(model, tmp_path)
    assert publishes(life, ("judged", "a", {"opinion": 1.0}), ("judged", "b", {"opinion": 1.0})), (
        life.sink.published
    )
    assert life.counted("pass") == 2
    life.end()
    life = live(model, tmp_path)
    life.pass_time(6)
    assert (life.queue.waiting, life.sink.published, life.counted("pass")) == (0, [], 2)


async def test_scores_of_judges_are_in_the_windows_of_the_next_process(
    live: Live, tmp_path: Path
) -> None:
    life = live(Model(0.5), tmp_path)
    await life.send(request(run_of("a")))
    life.pass_time(6)
    assert publishes_times(life, 2)
    life.end()
    life = live(Model(), tmp_path)
    found = {
        s.labels["metric"]: s.value
        for m in life.prometheus.shown.collect()
        for s in m.samples
        if s.name == "pathgauge_score_window_mean"
    }
    assert found == {"failure": 0.0, "opinion": 0.5}


@pytest.mark.parametrize(
    ("capacity", "overloaded"),
    [
        (Capacity(1, queue_size=2), 7),
        (Capacity(1, queue_bytes=1300), 7),
        (Capacity(4, queue_size=2), 4),
    ],
)
async def test_what_finds_no_place_says_so_and_is_counted(
    live: Live, capacity: Capacity, overloaded: int
) -> None:
    model = Model()
    life = live(model, capacity=capacity)
    model.hold()
    await life.send(request(*(run_of(f"agent {number}") for number in range(10))))
    life.pass_time(6)
    assert until(lambda: life.counted("not_evaluated") == overloaded), life.counted("not_evaluated")
    assert [one for one in life.sink.published if one[0] == "judged"].count(
        life.sink.published[-1]
    ) == 1
    assert life.sink.published[-1][2] == {"opinion": "judge_overloaded"}
    model.answer()
    assert until(lambda: life.counted("pass") == 10 - overloaded)


async def test_a_judge_that_never_answers_is_given_up(live: Live) -> None:
    model = Model()
    life = live(model, capacity=Capacity(deadline=0.05))
    model.hold()
    await life.send(request(run_of("a")))
    life.pass_time(6)
    assert publishes(
        life, ("published", "a", PUBLISHED), ("judged", "a", {"opinion": "judge_timeout"})
    ), life.sink.published


@pytest.mark.parametrize(
    "error", [RuntimeError("out of paper"), SystemExit(0), asyncio.CancelledError()]
)
async def test_a_judge_that_raises_is_an_error_of_its_criterion(
    live: Live, error: BaseException
) -> None:
    class Broken(Model):
        async def __call__(self, question: Any) -> Any:
            raise error

    life = live(Broken())
    for trace in "ab":
        await life.send(request(run_of(trace)))
        life.pass_time(6)
    assert until(lambda: life.counted("error") == 2)
    assert [failure[:2] for failure in life.failures] == [("opinion", type(error).__name__)] * 2


async def test_only_the_newest_revision_is_judged_and_counts_once(live: Live) -> None:
    model = Model()
    life = live(model)
    model.hold()
    await life.send(request(run_of("a", response="First.")))
    life.pass_time(6)
    assert until(lambda: len(model.asked) == 1)
    await life.send(request(tool_of("a")))
    life.pass_time(6)
    assert until(lambda: len(model.asked) == 2)
    model.answer()
    assert publishes(
        life,
        ("published", "a", PUBLISHED),
        ("published", "a", PUBLISHED),
        ("judged", "a", {"opinion": 1.0}),
    ), life.sink.published
    await life.send(request(tool_of("a", "more")))
    life.pass_time(6)
    assert publishes_times(life, 5)
    assert life.sink.published[-1] == ("judged again", "a", {"opinion": 1.0})
    assert life.counted("pass") == 1


async def test_a_revision_keeps_its_place_when_there_is_no_other(live: Live) -> None:
    model = Model()
    life = live(model, capacity=Capacity(concurrency=1, queue_size=1))
    model.hold()
    for number, agent in enumerate(("a", "b", "c"), 1):
        await life.send(request(run_of(agent)))
        life.pass_time(6)
        assert publishes_times(life, number)
        assert waits(life, min(number, 2))  # queues take what was published before
    await life.send(request(tool_of("b")))
    life.pass_time(6)
    assert publishes_times(life, 4)
    model.answer()
    assert until(lambda: life.counted("pass") == 2)
    assert life.sink.published[2:4] == [
        ("published", "c", PUBLISHED | {"opinion": "judge_overloaded"}),
        ("published", "b", PUBLISHED),
    ]
    assert life.counted("not_evaluated") == 1


async def test_an_invocation_that_late_spans_score_before_its_judge_does_counts_once(
    live: Live,
) -> None:
    model = Model()
    life = live(model, criteria=(Criterion("tool_error_rate", ToolErrorRate(), 0.5), JUDGED))
    model.hold()
    await life.send(request(run_of("a")))
    life.pass_time(6)
    assert publishes_times(life, 1)
    assert (life.telemetry.invocations_read.total(), life.telemetry.invocations_scored.total()) == (
        1,
        0,
    )
    await life.send(request(tool_of("a")))
    life.pass_time(6)
    assert until(lambda: life.telemetry.invocations_scored.total() == 1)
    model.answer()
    assert publishes_times(life, 3)
    assert (
        life.telemetry.invocations_scored.total(),
        life.telemetry.invocations_skipped.total(),
        life.counted("pass"),
    ) == (1, 0, 1)


async def test_what_proved_to_be_a_part_of_something_larger_is_not_judged(live: Live) -> None:
    model = Model()
    life = live(model)
    model.hold()
    await life.send(request(run_of("inner", trace="t", parent="outer")))
    life.pass_time(30)
    assert until(lambda: model.asked == ["inner"])
    await life.send(request(run_of("outer", trace="t")))
    life.pass_time(30)
    assert until(lambda: model.asked == ["inner", "outer"]), model.asked
    model.answer()
    assert until(lambda: life.counted("pass") == 1)
    assert [one for one in life.sink.published if one[0] == "judged"] == [
        ("judged", "outer", {"opinion": 1.0})
    ]


async def test_what_was_purged_is_shown_to_no_model(live: Live, tmp_path: Path) -> None:
    model = Model()
    life = live(model, tmp_path, capacity=Capacity(concurrency=1))
    model.hold()
    await life.send(request(run_of("a"), run_of("secret")))
    life.pass_time(6)
    assert until(lambda: life.queue.waiting == 2)
    purged = life.purge(Selection(trace_id=trace_id("secret")))
    assert purged.evaluations == {("", trace_id("secret"), span_id("secret"))}
    model.answer()
    assert until(lambda: life.counted("pass") == 1)
    life.end()
    life = live(model, tmp_path)
    life.pass_time(6)
    assert (life.queue.waiting, model.asked) == (0, ["a"])


@pytest.mark.parametrize("column", ["body", "known"])
async def test_a_damaged_row_costs_its_own_evaluation_alone(
    live: Live, tmp_path: Path, column: str
) -> None:
    model = Model()
    life = live(model, tmp_path)
    model.hold()
    await life.send(request(run_of("a"), run_of("b")))
    life.pass_time(6)
    assert until(lambda: len(model.asked) == 2)
    life.end()
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
        connection.execute(
            f"UPDATE awaited SET {column} = replace({column}, 'a', 'b') WHERE trace_id = ?",
            (trace_id("a"),),
        )
    model.answer()
    life = live(model, tmp_path)
    assert until(lambda: life.counted("pass") == 1)
    assert (life.sink.published, life.store.usage().quarantined) == (
        [("judged", "b", {"opinion": 1.0})],
        1,
    )


@pytest.mark.parametrize("by", ["scenario", "before"])
async def test_what_waits_is_purged_by_scenario_and_by_time(
    live: Live, tmp_path: Path, by: str
) -> None:
    model = Model()
    life = live(model, tmp_path, capacity=Capacity(concurrency=1))
    model.hold()
    await life.send(
        request(
            run_of("a", attributes={"test.case.id": "s"}),
            run_of("b", attributes={"test.case.id": "s"}),
        )
    )
    life.pass_time(6)
    assert until(lambda: life.queue.waiting == 2)
    life.purge(Selection(scenario="s") if by == "scenario" else Selection(before=time.time() + 1))
    assert until(lambda: life.queue.waiting == 0)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
        assert connection.execute("SELECT count(*) FROM awaited").fetchone() == (0,)


async def test_without_a_judge_the_reason_is_said_at_once(live: Live) -> None:
    life = live(Model(), sampling=None)
    await life.send(request(run_of("a")))
    life.pass_time(6)
    assert publishes(life, ("published", "a", PUBLISHED | {"opinion": "judge_unconfigured"})), (
        life.sink.published
    )


async def test_what_is_not_sampled_says_so_and_asks_nobody(live: Live) -> None:
    model = Model()
    life = live(model, sampling=Sampling(rate=0.0))
    await life.send(request(run_of("a")))
    life.pass_time(6)
    assert publishes(life, ("published", "a", PUBLISHED | {"opinion": "not_sampled"})), (
        life.sink.published
    )
    assert not model.asked


async def test_an_invocation_that_only_judges_score_is_scored_or_skipped_once(live: Live) -> None:
    model = Model()
    life = live(model, criteria=(JUDGED,), capacity=Capacity(concurrency=1, queue_size=1))
    model.hold()
    await life.send(request(run_of("a"), run_of("b"), run_of("c")))
    life.pass_time(6)
    assert until(lambda: life.telemetry.invocations_skipped.total() == 1)
    assert (life.telemetry.invocations_read.total(), life.telemetry.invocations_scored.total()) == (
        3,
        0,
    )
    model.answer()
    assert until(lambda: life.telemetry.invocations_scored.total() == 2)
    assert life.telemetry.invocations_skipped.get("no_scenario_id") == 1


async def test_the_score_of_a_conversation_has_what_judges_said_of_its_turns(live: Live) -> None:
    turns = (ReferenceTurn(user_input="first"), ReferenceTurn(user_input="second"))
    criteria = (WORKS, Criterion("opinion", DueOpinion(), 0.5))
    life = live(
        Model(0.5),
        criteria=criteria,
        references=(Reference("talk", turns),),
        conversation_idle=100.0,
    )
    named = {"gen_ai.conversation.id": "c", "test.case.id": "talk"}
    for number in (1, 2):
        await life.send(
            request(run_of("a", trace=str(number), start=10.0 * number, attributes=named))
        )
        life.pass_time(6)
        assert publishes_times(life, 2 * number), life.sink.published
    life.pass_time(101)
    assert until(lambda: life.sink.conversations)
    [case] = life.sink.conversations
    assert {score.criterion.name: score.value for score in case.scores} == {"opinion": 0.5}


def invocation(trace: str, tenant: str = "") -> Invocation:
    return Invocation(trace_id(trace), span_id(trace), "made up", tenant)


def test_a_higher_rate_takes_what_a_lower_one_takes_and_more() -> None:
    some = [invocation(str(number)) for number in range(2000)]
    taken = {
        rate: {one.trace_id for one in some if Sampling(rate).takes(one, None)}
        for rate in (0.0, 0.01, 0.1, 0.5, 1.0)
    }
    rates = sorted(taken)
    assert all(taken[lower] <= taken[higher] for lower, higher in pairwise(rates))
    assert [len(taken[rate]) for rate in (0.0, 1.0)] == [0, 2000]
    assert 140 <= len(taken[0.1]) <= 260
    assert 900 <= len(taken[0.5]) <= 1100


def test_a_scenario_has_a_rate_of_its_own_and_some_tenants_are_never_judged() -> None:
    sampling = Sampling(0.0, {"checkout": 1.0}, frozenset({"canary"}))
    found = [sampling.takes(invocation("t"), scenario) for scenario in (None, "other", "checkout")]
    assert (found, sampling.takes(invocation("t", "canary"), "checkout")) == (
        [False, False, True],
        False,
    )
