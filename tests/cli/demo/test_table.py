from rich.console import Console

from pathgauge.collector.cli.demo.table import Row, read_rows, render

METRICS = """\
# HELP pathgauge_score_window_mean Mean score.
# TYPE pathgauge_score_window_mean gauge
pathgauge_score_window_mean{agent="support",scenario="refund",metric="tool_trajectory_f1"} 0.5
pathgauge_score_window_mean{agent="concierge",scenario="book",metric="tool_trajectory_f1"} 1.0
pathgauge_score_window_mean{agent="support",scenario="refund",metric="response_match_score"} 0.9
pathgauge_score_window_mean{agent="support",scenario="refund",metric="latency"} 0.25
# HELP pathgauge_score_window_samples Scores in the window.
# TYPE pathgauge_score_window_samples gauge
pathgauge_score_window_samples{agent="support",scenario="refund",metric="tool_trajectory_f1"} 12.0
pathgauge_score_window_samples{agent="concierge",scenario="book",metric="tool_trajectory_f1"} 13.0
# HELP pathgauge_threshold Threshold.
# TYPE pathgauge_threshold gauge
pathgauge_threshold{agent="support",scenario="refund",metric="tool_trajectory_f1"} 0.8
pathgauge_threshold{agent="concierge",scenario="book",metric="tool_trajectory_f1"} 0.8
pathgauge_threshold{agent="support",scenario="refund",metric="response_match_score"} 0.7
# HELP pathgauge_threshold_breached Whether the mean misses the threshold.
# TYPE pathgauge_threshold_breached gauge
pathgauge_threshold_breached{agent="support",scenario="refund",metric="tool_trajectory_f1"} 1.0
pathgauge_threshold_breached{agent="concierge",scenario="book",metric="tool_trajectory_f1"} 0.0
# HELP pathgauge_last_evaluation_timestamp_seconds When it was scored.
# TYPE pathgauge_last_evaluation_timestamp_seconds gauge
pathgauge_last_evaluation_timestamp_seconds{agent="support",scenario="refund"} 1000.0
# HELP pathgauge_invocations_scored_total Invocations.
# TYPE pathgauge_invocations_scored_total counter
pathgauge_invocations_scored_total 25.0
"""


def shown(metrics: str, now: float) -> list[str]:
    """The lines below the heading, blanks squeezed."""
    console = Console(width=80)
    with console.capture() as capture:
        console.print(render(metrics, now))
    lines = [" ".join(line.split()) for line in capture.get().split("─")[-1].splitlines()]
    return [line for line in lines if line]


def test_rows_join_the_gauges_of_one_criterion() -> None:
    assert read_rows(METRICS) == [
        Row(
            "concierge",
            "book",
            "tool_trajectory_f1",
            mean=1.0,
            threshold=0.8,
            samples=13.0,
            scored_at=None,
            breached=False,
        ),
        Row(
            "support",
            "refund",
            "response_match_score",
            mean=0.9,
            threshold=0.7,
            samples=None,
            scored_at=1000.0,
            breached=False,
        ),
        Row(
            "support",
            "refund",
            "tool_trajectory_f1",
            mean=0.5,
            threshold=0.8,
            samples=12.0,
            scored_at=1000.0,
            breached=True,
        ),
    ]


def test_the_table_names_each_scenario_once_and_marks_what_is_breached() -> None:
    assert shown(METRICS, now=1004.6) == [
        "concierge book",
        "tool_trajectory_f1 1.000 0.800 13",
        "support refund 5 s ago",
        "response_match_score 0.900 0.700",
        "tool_trajectory_f1 0.500 0.800 12 breached",
    ]


def test_an_evaluation_newer_than_the_clock_has_the_age_0() -> None:
    assert "support refund 0 s ago" in shown(METRICS, now=900)


def test_before_the_first_score_the_table_is_empty() -> None:
    assert shown("", now=0) == []
