"""Entries that name their metric, and custom metrics of ADK."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.core.documents import ConfigError
from pathgauge.scorers.types import Json

SEED = {"metric": "tool_trajectory_f1", "criterion": {"threshold": 0.8, "matchMode": "name_only"}}
F1 = {"tool_trajectory_f1": {"threshold": 0.8, "matchMode": "name_only"}}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_evals.py").write_text("def brevity(invocation, turn, limit=5):\n    return 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)


def of_file(data: Json) -> dict[str, Json]:
    Path("test_config.json").write_text(json.dumps(data))
    return config.criteria_of_file(Path("test_config.json"))


def of_config(criteria: Json) -> dict[str, Json]:
    Path("pathgauge.yaml").write_text(json.dumps({"criteria": criteria}))
    return config.load(Path("pathgauge.yaml")).criteria


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ([SEED], F1),
        (SEED, F1),
        (
            [SEED, {"metric_name": "failure", "criterion": 0}, {"metricName": "latency"}],
            {**F1, "failure": 0, "latency": None},
        ),
        ([{"metric": "failure", "threshold": 0.5}], {"failure": {"threshold": 0.5}}),
        (
            [{"metric": "tool_trajectory_f1", "threshold": 0.1, "criterion": SEED["criterion"]}],
            {"tool_trajectory_f1": {"threshold": 0.8, "match_mode": "name_only"}},
        ),
    ],
)
def test_entries_are_criteria_by_name(criteria: Json, expected: Json) -> None:
    assert of_config(criteria) == expected
    assert of_file({"criteria": criteria}) == expected
    assert of_file(criteria) == expected


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        (
            [{"metric": "tool_trajectory_f1", "criterion": {"threshold": 7}}],
            ("1:75: criteria.tool_trajectory_f1.threshold: found 7, expected a number from 0 to 1"),
        ),
        ([{"metric": "latencyy"}], "1:15: criteria.latencyy: no scorer 'latencyy'"),
        ([SEED, SEED], "1:108: criteria[1]: found the metric 'tool_trajectory_f1' again"),
        (
            [{"criterion": 1}],
            (
                "1:15: criteria[0]: found an entry without a metric, expected the keys metric and"
                " criterion"
            ),
        ),
        (
            ["failure"],
            "1:15: criteria[0]: found 'failure', expected the keys metric and criterion, or a"
            " mapping such as {latency: 30} in place of the list",
        ),
        (
            [{"metric": "failure", "criteria": 1}],
            "1:37: criteria[0].criteria: found an unknown key, expected one of metric,",
        ),
    ],
)
def test_a_mistake_in_an_entry_has_its_position(criteria: Json, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        of_config(criteria)
    assert str(caught.value).startswith(f"pathgauge.yaml:{expected}")


def test_mistakes_in_several_entries_are_reported_together() -> None:
    with pytest.raises(ConfigError) as caught:
        of_config([{"criterion": 1}, 5, SEED])
    assert len(caught.value.problems) == 2


def problems_of(load: Callable[[Json], object], data: Json) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(data)
    return [f"{'.'.join(map(str, one.path))}: {one.text}" for one in caught.value.problems]


def test_a_wrong_entry_hides_no_other_mistake_of_the_file() -> None:
    entries: Json = [
        {"metric": "tool_trajectory_f1", "threshold": 7},
        5,
        {"metric": "failure", "a": 1, "b": 2},
    ]

    def of_whole_file(data: Json) -> None:
        Path("pathgauge.yaml").write_text(json.dumps(data))
        config.load(Path("pathgauge.yaml"))

    found = problems_of(of_whole_file, {"criteria": entries, "store": {"path": 7}, "stor": {}})
    assert [one.split(", ")[0] for one in found] == [
        "criteria.tool_trajectory_f1.threshold: found 7",
        "criteria.1: found 5",
        "criteria.2.a: found an unknown key",
        "criteria.2.b: found an unknown key",
        "store.path: found 7",
        "stor: found an unknown key",
    ]
    custom = {"a": {"code_config": {"name": "fn"}}, "b": 4}
    found = problems_of(of_file, {"criteria": [{"metric": "a"}, 5, SEED], "custom_metrics": custom})
    assert [one.split(", ")[0] for one in found] == [
        "criteria.1: found 5",
        "custom_metrics.a: found no function",
        "custom_metrics.b: found no function",
    ]


@pytest.mark.parametrize("key", ["custom_metrics", "customMetrics"])
@pytest.mark.parametrize("code", ["code_config", "codeConfig"])
@pytest.mark.parametrize(
    ("written", "options"), [(0.5, {"threshold": 0.5}), ({"limit": 3}, {"limit": 3}), (None, {})]
)
def test_a_custom_metric_is_scored_by_its_function(
    key: str, code: str, written: Json, options: dict[str, Json]
) -> None:
    metrics = {"brief": {code: {"name": "my_evals.brevity"}}, "unused": {code: {"name": "no.fn"}}}
    found = of_file({"criteria": {"brief": written, "failure": 0}, key: metrics})
    assert found == {"brief": {**options, "scorer": "my_evals:brevity"}, "failure": 0}


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (5, "1:42: custom_metrics: found 5, expected a mapping"),
        ({"a": 5}, "1:48: custom_metrics.a: found no function, expected code_config"),
        ({"a": {"code_config": {"name": "fn"}}}, "1:48: custom_metrics.a: found no function"),
    ],
)
def test_a_mistake_in_a_custom_metric_has_its_position(metrics: Json, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        of_file({"criteria": {"a": 1}, "custom_metrics": metrics})
    assert str(caught.value).startswith(f"test_config.json:{expected}")


def test_a_missing_function_of_a_custom_metric_is_reported_at_its_criterion() -> None:
    metrics = {"a": {"code_config": {"name": "my_evals.nothing"}}}
    with pytest.raises(ConfigError) as caught:
        of_file({"criteria": {"a": 1}, "custom_metrics": metrics})
    expected = "test_config.json:1:20: criteria.a.scorer: the module 'my_evals' has no 'nothing'"
    assert str(caught.value) == expected
