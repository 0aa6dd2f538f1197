"""Windows and comparisons continue after a restart with the results on disk, and hold no more than
before.
"""

from __future__ import annotations

import random
import sqlite3
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, ClassVar

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation
from pathgauge.collector.core.evaluations.recent import Recent, Wants
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import Withdrawn
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.store import Progress, recent_results
from pathgauge.collector.store.recent_results import WindowBounds
from pathgauge.collector.store.sql import MAX_KEYS
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score
from support.sink_harness import ANSWER, Answer, SinkHarness, with_turns

SIZE, MAX_AGE_S = 5, 3600.0
NOW = time.time()
"""The store measures the age of results with the wall clock."""
SCORES: tuple[float | str, ...] = (0.0, 0.5, 1.0, "undefined")
GOOD, BAD = (1.0, 0.9, 1.0, 0.8, 0.9), (0.0, 0.1, 0.0, 0.2, 0.1)


@dataclass(frozen=True, slots=True)
class Tokens(Answer):
    """The version of agents that have one."""

    name: ClassVar[str] = "tokens"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return (
            Score.not_evaluated("undefined")
            if actual.input_tokens is None
            else Score(actual.input_tokens)
        )


TOKENS = Criterion("tokens", Tokens())


class Life(SinkHarness):
    """A running sink with its store."""

    def __init__(
        self, folder: Path, now: float, *, reads_everything: bool = False, **options: Any
    ) -> None:
        metrics, windows = DurableMetrics(), Windows(SIZE, MAX_AGE_S)
        super().__init__(
            ANSWER,
            TOKENS,
            telemetry=InternalTelemetry(),
            metrics=metrics,
            windows=windows,
            **{"min_samples": 5, **options},
        )
        self.now = now
        self.store = SqliteStore(folder, windows=WindowBounds(MAX_AGE_S))
        restored = self.store.open()
        tracemalloc.start()
        self.read = 0
        self._reads_everything = reads_everything
        self.sink.restore(restored.counts, self._recent, now)
        self.max_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.store.start(lambda _: True, lambda: 0.0)
        self._said: list[Evaluation | Withdrawn] = []

    def _recent(self, wants: Wants) -> Iterator[Recent]:
        for one in self.store.recent((lambda *_: True) if self._reads_everything else wants):
            self.read += 1
            yield one

    def publish_evaluation(self, evaluation: Evaluation) -> Evaluation:
        self._said.append(super().publish_evaluation(evaluation))
        return evaluation

    def withdraw(self, evaluation: Evaluation) -> None:
        self.sink.withdraw(evaluation.key)
        self._said.append(Withdrawn(evaluation.key))

    def commit(self) -> None:
        counts = self.sink.pending()
        assert self.store.commit(Progress(0, 0.0, self.now, tuple(self._said), counts=counts))
        self.sink.commit()
        self._said.clear()

    def publish_all(
        self, *scores: float | str, each: float = 1.0, **fields: Any
    ) -> list[Evaluation]:
        evaluations = []
        for one in scores:
            self.now += each
            evaluations.append(self.publish(one, **fields))
            self.commit()
        return evaluations

    def shown(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """The content of all windows."""
        names = [f"score_window_{what}" for what in ("mean", "min", "samples")]
        names.append("threshold_breached")
        return {
            (name, labels): n
            for name in names
            for labels, n in self.series(f"pathgauge_{name}").items()
        }


Live = Callable[..., Life]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """Starts a sink, after stopping the last one; the clock stands still meanwhile."""
    lives: list[Life] = []

    def live(**options: Any) -> Life:
        end()
        lives.append(Life(tmp_path / "data", lives[-1].now if lives else NOW - 600, **options))
        if len(lives) > 1:
            lives[-1].published = lives[-2].published
        return lives[-1]

    def end() -> None:
        for one in lives:
            one.store.close()

    yield live
    end()


def test_a_metric_that_few_evaluations_have_keeps_its_window(live: Live) -> None:
    before = live()
    before.publish_all(*GOOD, input_tokens=0)
    before.publish_all(*GOOD * 5)
    assert before.series("pathgauge_score_window_samples")["planner", "refund", "tokens"] == SIZE
    assert live().shown() == before.shown()


@pytest.mark.parametrize("common", [150, 250])
def test_scenarios_and_agents_whose_long_names_begin_alike_keep_windows_of_their_own(
    live: Live, common: int
) -> None:
    """As those of parametrized tests, and of cloud resources."""
    names = [f"{end}{'a' * common}" if common > 200 else f"{'a' * common}{end}" for end in "xy"]
    references = with_turns(*(Reference(name, ()) for name in names))
    before = live(references=references)
    for name, scores in zip(names, (GOOD, BAD), strict=True):
        before.publish_all(*scores, scenario_id=name)
        before.publish_all(*scores, agent=name)
    means = before.series("pathgauge_score_window_mean")
    assert sorted(means.values()) == pytest.approx([0.08, 0.08, 0.92, 0.92])
    assert live(references=references).shown() == before.shown()


def test_a_version_with_little_of_the_traffic_keeps_its_window(live: Live) -> None:
    before = live()
    for scores, version in ((GOOD, "v1"), (BAD, "v2"), (GOOD * 5, "v1")):
        before.publish_all(*scores, agent_version=version)
    [shown] = {
        score.window.samples
        for score in before.sink.shown.current_scores()
        if score.window.version == "v2"
    }
    assert shown == SIZE
    windows = {(one.window, one.window.values) for one in before.sink.shown.current_scores()}
    after = {(one.window, one.window.values) for one in live().sink.shown.current_scores()}
    assert after == windows


@pytest.mark.parametrize("fields", [{"input_tokens": 0}, {}], ids=["scored", "never scored"])
def test_only_results_that_windows_may_hold_are_read_whole(
    live: Live, fields: dict[str, Any]
) -> None:
    before = live()
    for _ in range(3 * MAX_KEYS):
        before.publish(0.5, agent_version="v1", **fields)
    before.commit()
    after = live()
    assert after.shown() == before.shown()
    assert SIZE <= after.read <= SIZE + MAX_KEYS


@pytest.mark.parametrize("seed", range(8))
def test_windows_are_the_same_as_if_everything_were_read(
    live: Live, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = random.Random(seed)
    monkeypatch.setattr(recent_results, "MAX_KEYS", 2)  # so that few are read ahead
    monkeypatch.setattr(recent_results, "SLICE", chosen.choice([2, 5, 20, 500]))
    monkeypatch.setattr(recent_results, "MAX_UNWANTED", chosen.choice([1, 500]))
    limits = LabelLimits(max_agents=2, max_versions=2, max_series=9)
    before, earlier = live(limits=limits), []
    for _ in range(120):
        fields: dict[str, Any] = {
            "agent": chosen.choice(["planner"] * 6 + ["writer", "invented"]),
            "agent_version": chosen.choice(["v1"] * 12 + ["v2", "", "v3"]),
            "scenario_id": chosen.choice(["refund"] * 6 + ["unknown"]),
            "input_tokens": chosen.choice([None] * 12 + [0]),
        }
        earlier += before.publish_all(chosen.choice(SCORES), **fields)
        if chosen.random() < 0.3:
            place = chosen.randrange(len(earlier))
            tokens = chosen.choice([None, 1])
            earlier[place] = before.revise(earlier[place], chosen.random(), input_tokens=tokens)
        if chosen.random() < 0.1:
            before.withdraw(earlier.pop(chosen.randrange(len(earlier))))
        before.commit()
    everything = live(limits=limits, reads_everything=True)
    after = live(limits=limits)
    shown, expected = (
        {(one.window, one.window.values) for one in life.sink.shown.current_scores()}
        for life in (after, everything)
    )
    assert shown == expected


def test_a_rare_score_of_a_version_without_room_is_in_the_window_of_its_scenario_again(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_results, "MAX_KEYS", 2)  # so that few are read ahead
    limits = LabelLimits(max_series=2)
    before = live(limits=limits)
    before.publish_all(1.0, agent_version="v1")
    before.publish_all(1.0, agent_version="v2", input_tokens=1)
    before.publish_all(*GOOD, *GOOD, agent_version="v1")
    expected = [("planner", "refund", None, (1,))]
    assert [tokens_in(life) for life in (before, live(limits=limits))] == [expected] * 2


def tokens_in(life: Life) -> list[tuple[str, str, str | None, tuple[float, ...]]]:
    windows = [one.window for one in life.sink.shown.current_scores()]
    return [
        (one.agent, one.scenario, one.version, one.values)
        for one in windows
        if one.metric == "tokens"
    ]


def test_a_revision_stays_where_the_first_record_was(live: Live) -> None:
    before = live()
    first, second, *_ = before.publish_all(*BAD)
    before.publish_all(0.5, 0.6)
    for evaluation in (first, second, *before.publish_all(0.7)):
        before.now += 1
        before.revise(evaluation, 1.0)
        before.commit()
    before.publish_all(0.8)
    assert live().shown() == before.shown()


def test_a_revision_after_the_restart_may_bring_the_first_score(live: Live) -> None:
    before = live()
    [first] = before.publish_all("undefined")
    after = live()
    after.revise(first, 0.7)
    assert after.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.7}


def test_what_was_withdrawn_or_is_too_old_is_in_no_window(live: Live) -> None:
    before = live()
    before.now = NOW - MAX_AGE_S - 60
    [old] = before.publish_all(0.3)
    before.now = NOW - 60
    before.revise(old, 0.4)
    [_, withdrawn] = before.publish_all(0.5, 0.6)
    before.withdraw(withdrawn)
    before.commit()
    after = live()
    assert after.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.5}
    assert after.shown() == before.shown()


@pytest.mark.slow
def test_names_that_senders_invent_take_no_memory_at_a_restart(live: Live) -> None:
    limits = LabelLimits(max_agents=2, max_versions=2, max_series=9)
    before, names = live(limits=limits), 6_000
    for number, score in enumerate(islice(cycle(GOOD), names)):
        invented = f"name {number}"
        fields = [{"scenario_id": invented}, {"agent": invented}, {"agent_version": invented}][
            number % 3
        ]
        before.publish(score, **fields)
    before.commit()
    after = live(limits=limits)
    assert after.series("pathgauge_score_window_samples")["planner", "__other__", "answer"] == SIZE
    assert after.max_bytes < names * 300


def test_what_is_looked_through_is_bounded(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live().publish_all(*GOOD, 0.5, 0.6)
    monkeypatch.setattr(recent_results, "MAX_RESULTS", 2)
    assert live().series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.55}


@pytest.mark.parametrize(
    "damage",
    [
        "at = 'late'",
        "at = x'00'",
        "agent = x'00'",
        "scenario = x'00'",
        "revision = 'first'",
        "body = 1",
    ],
)
def test_a_damaged_result_is_quarantined_and_the_others_are_restored(
    live: Live, tmp_path: Path, damage: str
) -> None:
    before = live()
    before.publish_all(0.1, 0.2, 0.3)
    before.store.close()
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as database, database:
        database.execute(f"UPDATE results SET {damage} WHERE id = 2")
    with capture_logs() as logs:
        after = live()
    assert after.series("pathgauge_score_window_mean") == {("planner", "refund", "answer"): 0.2}
    damaged = "damaged row of the store quarantined"
    assert [entry["row"] for entry in logs if entry["event"] == damaged] == [2]


def test_a_page_of_results_that_cannot_be_read_does_not_stop_the_start(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        files, "MAX_CHECKED_BYTES", 0
    )  # as if it were too large to be looked at when it is opened
    before = live()
    for number, score in enumerate(islice(cycle(GOOD), 200)):
        few = {"input_tokens": 0} if number < 2 or number >= 197 else {}
        before.publish(score, agent_version="v" * 500, **few)
    before.commit()
    before.store.close()
    database = tmp_path / "data" / files.DATABASE
    raw = bytearray(database.read_bytes())
    leaves = [
        at
        for at in range(0, len(raw), files.PAGE_BYTES)
        if raw[at] == 0x0D and b"vvvvvvvv" in raw[at : at + files.PAGE_BYTES]
    ]
    raw[leaves[len(leaves) // 2]] = 0x7F
    database.write_bytes(raw)
    with capture_logs() as logs:
        after = live()
    assert "the store was damaged; all readable rows were recovered" in [
        entry["event"] for entry in logs
    ]
    assert after.series("pathgauge_score_window_samples") == {
        ("planner", "refund", name): SIZE for name in ("answer", "tokens")
    }
    after.publish_all(0.5)
