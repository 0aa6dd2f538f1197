"""Criteria: thresholds, options, aliases, and what is laid over what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from collector import criteria
from collector.criteria import Place
from collector.documents import ConfigError, Document, yaml_source
from collector.evaluator import Criterion
from scorers.trajectory import ToolTrajectoryF1
from scorers.types import Invocation, Json, ReferenceTurn, Score

SECONDS = f"{__name__}:Seconds"


@dataclass(frozen=True)
class Seconds:
    """Something that has no upper end."""

    name: ClassVar[str] = "seconds"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = float("inf")
    higher_is_better: ClassVar[bool] = False
    needs_reference: ClassVar[bool] = False

    per_call: bool = False
    max_calls: int = 10
    derived: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if self.max_calls < 1:
            raise ValueError("max_calls must be at least 1")

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score(0.0)


def build(text: str) -> tuple[Criterion, ...]:
    (document,) = yaml_source.read(text, "c.yaml")
    return criteria.build(document.data, Place(document, ()))


def message(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        build(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tool_trajectory_f1: 0.8", Criterion("tool_trajectory_f1", ToolTrajectoryF1(), 0.8)),
        ("tool_trajectory_f1: 1", Criterion("tool_trajectory_f1", ToolTrajectoryF1(), 1)),
        ("tool_trajectory_f1: 0", Criterion("tool_trajectory_f1", ToolTrajectoryF1(), 0)),
        ("tool_trajectory_f1:", Criterion("tool_trajectory_f1", ToolTrajectoryF1(), None)),
        ("tool_trajectory_f1: {}", Criterion("tool_trajectory_f1", ToolTrajectoryF1(), None)),
        ("tool_trajectory_f1: {threshold: , ordered: false}", Criterion("tool_trajectory_f1", ToolTrajectoryF1(ordered=False), None)),
        (
            "tool_trajectory_f1: {threshold: 0.8, match_mode: name_and_args}",
            Criterion("tool_trajectory_f1", ToolTrajectoryF1("name_and_args"), 0.8),
        ),
        (
            "tool_trajectory_f1: {threshold: 0.8, matchMode: name_and_args}",
            Criterion("tool_trajectory_f1", ToolTrajectoryF1("name_and_args"), 0.8),
        ),
        ("strict: {scorer: tool_trajectory_f1, threshold: 0.5}", Criterion("strict", ToolTrajectoryF1(), 0.5)),
        (f"slow: {{scorer: '{SECONDS}', threshold: 90, perCall: true}}", Criterion("slow", Seconds(per_call=True), 90)),
        (f"'{SECONDS}': 2", Criterion(SECONDS, Seconds(), 2)),
    ],
)
def test_a_criterion_is_a_scorer_with_options_and_a_threshold(text: str, expected: Criterion) -> None:
    assert build(text) == (expected,)


def test_criteria_keep_their_order_and_false_switches_one_off() -> None:
    names = [criterion.name for criterion in build("latency: 5\nfailure: false\ntool_trajectory_f1: 1")]
    assert names == ["latency", "tool_trajectory_f1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tool_trajectory_f1: 7.0", "1:21: tool_trajectory_f1.threshold: found 7.0, expected a number from 0 to 1"),
        ("tool_trajectory_f1: -0.1", "1:21: tool_trajectory_f1.threshold: found -0.1, expected a number from 0 to 1"),
        ("latency: -1", "1:10: latency.threshold: found -1, expected a number from 0"),
        (
            "tool_trajectory_f1: .nan",
            "1:21: tool_trajectory_f1: found nan, expected a threshold (a number) or a mapping of threshold and options",
        ),
        ("tool_trajectory_f1: {threshold: .nan}", "1:33: tool_trajectory_f1.threshold: found nan, expected a number from 0 to 1"),
        ("tool_trajectory_f1: {threshold: .inf}", "1:33: tool_trajectory_f1.threshold: found inf, expected a number from 0 to 1"),
        ("latency: {threshold: .inf}", "1:22: latency.threshold: found inf, expected a number from 0"),
        ("tool_trajectory_f1: {threshold: '1'}", "1:33: tool_trajectory_f1.threshold: found '1', expected a number from 0 to 1"),
        ("tool_trajectory_f1: {threshold: true}", "1:33: tool_trajectory_f1.threshold: found true, expected a number from 0 to 1"),
        (
            "tool_trajectory_f1: true",
            "1:21: tool_trajectory_f1: found true, expected a threshold (a number) or a mapping of threshold and options",
        ),
        (
            "tool_trajectory_f1: [1]",
            "1:21: tool_trajectory_f1: found a list, expected a threshold (a number) or a mapping of threshold and options",
        ),
        ("tool_trajectry_f1: 1", "1:1: tool_trajectry_f1: no scorer 'tool_trajectry_f1'; did you mean 'tool_trajectory_f1'?"),
        ("strict: {scorer: tool_trajectry_f1}", "1:18: strict.scorer: no scorer 'tool_trajectry_f1'; did you mean 'tool_trajectory_f1'?"),
        ("strict: {scorer: 1}", "1:18: strict.scorer: found 1, expected the name of a scorer"),
        ("strict: {scorer: 'nowhere:Scorer'}", "1:18: strict.scorer: no module 'nowhere'"),
        (
            "safety_v1: 1.0",
            "1:1: safety_v1: found 'safety_v1', which needs a judge model and is not available in this version",
        ),
        (
            "tool_trajectory_f1: {match_mode: name_onl}",
            "1:34: tool_trajectory_f1.match_mode: found 'name_onl', expected 'name_only', 'name_and_args' or 'name_and_required_args';"
            " did you mean 'name_only'?",
        ),
        (
            "tool_trajectory_f1: {ignor_args: true}",
            "1:22: tool_trajectory_f1.ignor_args: found an unknown key, expected one of match_mode, ordered",
        ),
        (
            "tool_trajectory_f1: {matchMod: name_only}",
            "1:22: tool_trajectory_f1.matchMod: found an unknown key, expected one of match_mode, ordered; did you mean 'match_mode'?",
        ),
        ("failure: {x: 1}", "1:11: failure.x: found an unknown key, expected no keys"),
        (
            "tool_trajectory_f1: {matchMode: name_only, match_mode: name_only}",
            "1:21: tool_trajectory_f1: found a key in camelCase and in snake_case, expected it once",
        ),
        ("trajectory_single_tool_use: 1", "1:29: trajectory_single_tool_use.tool_name: found nothing, expected this key"),
        (
            f"s: {{scorer: '{SECONDS}', derived: 1}}",
            f"1:{len(SECONDS) + 17}: s.derived: found an unknown key, expected one of per_call, max_calls",
        ),
        (f"s: {{scorer: '{SECONDS}', max_calls: 0}}", "1:4: s: max_calls must be at least 1"),
        (
            "tool_trajectory_f1: {threshold: 2, ordered: maybe}\nfoo: []",
            "1:33: tool_trajectory_f1.threshold: found 2, expected a number from 0 to 1\n"
            "c.yaml:1:45: tool_trajectory_f1.ordered: found 'maybe', expected true or false\n"
            "c.yaml:2:6: foo: found a list, expected a threshold (a number) or a mapping of threshold and options",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, expected: str) -> None:
    assert message(text) == f"c.yaml:{expected}"


def test_without_positions_a_mistake_is_named_by_its_keys() -> None:
    with pytest.raises(ConfigError, match=r"^criteria\.failure\.threshold: found 2, expected a number from 0 to 1$"):
        criteria.build({"failure": 2}, Place(Document("", None), ("criteria",)))


@pytest.mark.parametrize("name", sorted(criteria.NOT_AVAILABLE))
def test_what_is_called_not_available_is_not_installed(name: str) -> None:
    assert message(f"{name}: 1").endswith("is not available in this version")


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        (0.8, 0.5, {"threshold": 0.5}),
        ({"threshold": 0.8, "matchMode": "name_only"}, 0.5, {"threshold": 0.5, "match_mode": "name_only"}),
        (0.8, {"match_mode": "name_only"}, {"threshold": 0.8, "match_mode": "name_only"}),
        ({"match_mode": "name_only"}, {"matchMode": "name_and_args"}, {"match_mode": "name_and_args"}),
        ({"threshold": 0.8, "ordered": False}, {"threshold": None}, {"threshold": None, "ordered": False}),
        (0.8, None, {"threshold": 0.8}),
        (0.8, False, False),
        (False, 0.5, 0.5),
        ({"threshold": 0.8, "ordered": False}, {"scorer": "failure"}, {"scorer": "failure"}),
        ({"scorer": "latency", "threshold": 9}, 5, {"scorer": "latency", "threshold": 5}),
        (0.8, "nonsense", "nonsense"),
    ],
)
def test_a_criterion_is_laid_over_another(below: Json, above: Json, expected: Json) -> None:
    assert criteria.lay_over({"x": below, "y": 1}, {"x": above, "z": 2}) == {"x": expected, "y": 1, "z": 2}
