"""The numbers behind the pictures: sparklines, charts over time, and timelines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pathgauge import ToolTrajectoryAvgScore
from pathgauge.collector.api.history import MAX_POINTS, MAX_RESULTS, Line, Point, history
from pathgauge.collector.api.models import Score, VersionScore, time_of
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.evaluations.windows import Window
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.web.sparklines import HEIGHT, WIDTH, sparkline
from pathgauge.collector.web.time_chart import chart
from pathgauge.collector.web.timeline import timeline
from pathgauge.scorers.cost.latency_and_failure import Latency
from pathgauge.scorers.types import AgentRun, Invocation, ModelCall, Scorer, ToolCall
from support.api_client import sources
from support.evaluated import WALL, commit, evaluation, opened

SERIES = Series("support", "parcel")


def score(*recent: float, threshold: float | None = None) -> Score:
    return Score(
        criterion="c",
        mean=0.5,
        samples=20,
        threshold=threshold,
        higher_is_better=True,
        state="ok",
        recent=list(recent),
    )


def version(name: str, samples: int, last: float, criterion: str = "c") -> VersionScore:
    return VersionScore(
        version=name, criterion=criterion, mean=0.5, samples=samples, last=time_of(last)
    )


def test_a_sparkline_fits_its_box_with_the_threshold() -> None:
    line = sparkline(score(0.0, 0.5, 1.0, threshold=2.0), ())
    assert line.path == f"M3 {HEIGHT - 3}L60 20L{WIDTH - 3} 14"
    assert (line.end, line.threshold, line.marks) == ((WIDTH - 3, 14), 3, ())


@pytest.mark.parametrize(("values", "path"), [((0.5,), "M3 14L117 14"), ((), "")])
def test_a_sparkline_of_few_scores_is_flat(values: tuple[float, ...], path: str) -> None:
    assert sparkline(score(*values), ()).path == path


def test_marks_show_where_versions_begin_but_not_the_oldest() -> None:
    versions = [
        version("1", 10, 1),
        version("3", 5, 3),
        version("2", 5, 2),
        version("x", 1, 9, "d"),
    ]
    marks = sparkline(score(0.1, 0.2), versions).marks
    assert [(mark.version, mark.x) for mark in marks] == [("3", 88), ("2", 60)]


def current(scorer: Scorer) -> CurrentScore:
    window = Window("support", "parcel", "trajectory", 0.5, 0, 1, WALL)
    return CurrentScore(window, Criterion("trajectory", scorer, 1.0), 1)


def test_a_history_has_means_with_intervals_versions_and_behaviours(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for number, outcome in enumerate(("failed", "passed", "passed", "stopped")):
            name, release = f"{outcome}{number}", str(number // 2)
            commit(store, [evaluation(name, outcome, version=release)], WALL + 100 * number)
        commit(store, [evaluation("other", scenario="letter")], WALL + 500)
    found = history(sources(tmp_path, scores=lambda: [current(ToolTrajectoryAvgScore())]), SERIES)
    assert (found.results, found.complete) == (4, True)
    [line] = found.lines
    assert (line.criterion, line.threshold, line.bounds) == ("trajectory", 1.0, (0.0, 1.0))
    assert [(point.at - WALL, point.mean, point.samples) for point in line.points] == [
        (0, 0.0, 1),
        (100, 1.0, 1),
        (200, 1.0, 1),
        (300, 0.0, 1),
    ]
    assert [round(line.points[0].low, 2), round(line.points[0].high, 2)] == [0.0, 0.79]
    assert [(one.version, one.first_at - WALL, dict(one.verdicts)) for one in found.versions] == [
        ("0", 0, {"failed": 1, "passed": 1}),
        ("1", 200, {"passed": 1, "failed": 1}),
    ]
    assert [(one.tools, one.runs, one.failed) for one in found.behaviours] == [
        (("find_order", "track"), 3, 1),
        (("find_order",), 1, 1),
    ]


@pytest.mark.slow
def test_a_history_is_bounded(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for start in range(0, MAX_RESULTS + 100, 100):
            batch = [evaluation(f"r{start + n}", "passed") for n in range(100)]
            commit(store, batch, WALL + start)
    found = history(sources(tmp_path), SERIES)
    assert (found.results, found.complete) == (MAX_RESULTS, False)
    assert len(found.lines[0].points) <= MAX_POINTS


def test_a_history_is_in_the_order_of_time_although_the_clock_was_set_back(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for number, after in enumerate((3_600, 3_660, 0, 60)):
            commit(store, [evaluation(str(number), version=str(number // 2))], WALL + after)
    found = history(sources(tmp_path), SERIES)
    assert [point.at - WALL for point in found.lines[0].points] == [30, 3_630]
    assert [(one.version, one.first_at - WALL, one.last_at - WALL) for one in found.versions] == [
        ("1", 0, 60),
        ("0", 3_600, 3_660),
    ]


def test_a_criterion_that_is_not_active_any_more_has_no_interval(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [evaluation("a")], WALL)
    [line] = history(sources(tmp_path), SERIES).lines
    assert (line.bounds, line.points) == (None, (Point(WALL, 0.0, 1, 0.0, 0.0),))


def test_a_score_without_limits_has_its_own_scale(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [evaluation("a")], WALL)
    [line] = history(sources(tmp_path, scores=lambda: [current(Latency())]), SERIES).lines
    assert line.bounds is None


def line(*means: float, bounds: tuple[float, float] | None = (0.0, 1.0)) -> Line:
    points = tuple(Point(1000.0 + 60 * n, mean, 1, mean, mean) for n, mean in enumerate(means))
    return Line("c", None, True, points, bounds)


def test_a_chart_has_axes_in_utc_and_the_range_of_the_score() -> None:
    found = chart(line(0.0, 1.0), ())
    assert found.path == "M52 194L708 12"
    assert [tick.text for tick in found.times] == ["00:16:40", "00:17:10", "00:17:40"]
    assert [tick.text for tick in found.heights] == ["0", "0.5", "1"]
    assert json.loads(found.data)["columns"][0] == [1000, 1060]


def test_a_chart_without_limits_of_the_score_leaves_a_margin() -> None:
    assert json.loads(chart(line(10.0, 20.0, bounds=None), ()).data)["range"] == [9.2, 20.8]
    assert json.loads(chart(line(1.0, 20.0, bounds=None), ()).data)["range"] == [0.0, 21.52]
    assert json.loads(chart(line(0.0, bounds=None), ()).data)["range"] == [0.0, 1.0]


S = 10**9


def test_a_timeline_has_a_bar_for_each_call_with_known_times() -> None:
    invocation = Invocation(
        "t",
        "s",
        "genai",
        start_ns=10 * S,
        end_ns=20 * S,
        model_calls=(ModelCall("m", model="large", start_ns=10 * S, end_ns=15 * S),),
        tool_calls=(
            ToolCall("look", start_ns=15 * S, end_ns=15 * S, error="no"),
            ToolCall("late"),
            ToolCall("back", start_ns=16 * S, end_ns=14 * S),
        ),
        sub_agents=(AgentRun("a", "courier", start_ns=16 * S, end_ns=20 * S),),
    )
    found = timeline(invocation)
    assert found is not None
    assert [
        (bar.kind, bar.name, bar.start, bar.width, bar.after_s, bar.duration_s, bar.failed)
        for bar in found.bars
    ] == [
        ("model", "large", 0, 50, 0, 5, False),
        ("tool", "look", 50, 0.4, 5, 0, True),
        ("agent", "courier", 60, 40, 6, 4, False),
    ]
    assert (found.further, found.without_times, found.duration_s) == (0, 2, 10)


def test_without_times_there_is_no_timeline() -> None:
    assert timeline(Invocation("t", "s", "genai", tool_calls=(ToolCall("look"),))) is None
