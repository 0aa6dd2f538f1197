"""Names of metrics in other tools that stand for scorers with another name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.config.criteria import Location, build
from pathgauge.collector.core.documents import ConfigError, json_source
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.tool_use.confirmation import InterruptRejection
from pathgauge.scorers.trajectories.adk import MatchType, ToolTrajectoryAvgScore
from support.packages import install

IN_ORDER = ToolTrajectoryAvgScore(match_type=MatchType.IN_ORDER)


def built(criteria: str) -> tuple[Criterion, ...]:
    document = json_source.read(criteria, "c.json")
    return build(document.data, Location(document, ()))


@pytest.mark.parametrize(
    ("criteria", "name", "scorer"),
    [
        ('{"tool_trajectory_in_order": 1.0}', "tool_trajectory_in_order", IN_ORDER),
        ('{"x": {"scorer": "tool_trajectory_in_order", "threshold": 1.0}}', "x", IN_ORDER),
        (
            '{"tool_trajectory_in_order": {"matchType": "EXACT", "threshold": 1.0}}',
            "tool_trajectory_in_order",
            ToolTrajectoryAvgScore(),
        ),
        (
            '{"tool_calls_after_approval": {"sensitive_tool": "refund", "threshold": 1.0}}',
            "tool_calls_after_approval",
            InterruptRejection("refund"),
        ),
    ],
)
def test_an_alias_is_the_scorer_with_options(criteria: str, name: str, scorer: Any) -> None:
    assert built(criteria) == (Criterion(name, scorer, 1.0),)


def test_another_scorer_under_the_name_of_an_alias_is_that_scorer() -> None:
    (criterion,) = built('{"tool_trajectory_in_order": {"scorer": "failure"}}')
    assert criterion.scorer.name == "failure"


def test_a_scorer_that_a_package_registers_under_the_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "scorers", tool_trajectory_in_order="pathgauge:Failure")
    monkeypatch.syspath_prepend(tmp_path)
    assert built('{"tool_trajectory_in_order": 0.5}')[0].scorer.name == "failure"


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        (
            '{"tool_trajectory_in_order": {"threshold": 7}}',
            "c.json:1:44: tool_trajectory_in_order.threshold: found 7, expected a number from 0 to"
            " 1",
        ),
        (
            '{"tool_calls_after_approval": 1}',
            "c.json:1:31: tool_calls_after_approval.sensitive_tool",
        ),
    ],
)
def test_a_mistake_has_its_position(criteria: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built(criteria)
    assert str(caught.value).startswith(expected)
