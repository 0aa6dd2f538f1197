"""Criteria made of others, with members from the configuration, its criteria file and scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.config import active
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.composite.composite import Composite, Member
from pathgauge.scorers.cost.latency_and_failure import Failure, Latency
from pathgauge.scorers.types import Invocation

CONFIGURATION = """
references: [refs.yaml]
criteria:
  all: {scorer: "pathgauge:Composite", of: [latency, failure], threshold: 1}
  latency: 5
  failure: 0
"""
SOUND = Member("failure", Failure(), 0)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, so that messages show short paths."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resolve(configuration: str, references: str = "[]", criteria_file: str = "{}") -> ActiveConfig:
    Path("pathgauge.yaml").write_text(configuration, encoding="utf-8")
    Path("refs.yaml").write_text(references, encoding="utf-8")
    Path("common.json").write_text(criteria_file, encoding="utf-8")
    return active.resolve(config.load(Path("pathgauge.yaml")))


def criteria(resolved: ActiveConfig, scenario: str) -> tuple[Criterion, ...]:
    invocation = Invocation("t", "s", "genai", scenario_id=scenario)
    return resolved.evaluator.criteria_for(resolved.references.match(invocation), invocation)


def fast(threshold: float) -> Member:
    return Member("latency", Latency(), threshold)


def test_a_scenario_that_overrides_a_criterion_changes_criteria_made_of_it() -> None:
    resolved = resolve(
        CONFIGURATION,
        """
- {scenario: plain, input: x}
- {scenario: slow, input: x, criteria: {latency: 60}}
- {scenario: untimed, input: x, criteria: {latency: false}}
""",
    )
    failure = Criterion("failure", Failure(), 0)
    assert criteria(resolved, "plain") == (
        Criterion("all", Composite((fast(5), SOUND)), 1),
        Criterion("latency", Latency(), 5),
        failure,
    )
    assert criteria(resolved, "slow") == (
        Criterion("all", Composite((fast(60), SOUND)), 1),
        Criterion("latency", Latency(), 60),
        failure,
    )
    assert criteria(resolved, "untimed") == (Criterion("all", Composite((SOUND,)), 1), failure)


def test_a_scenario_can_replace_the_members() -> None:
    resolved = resolve(CONFIGURATION, "{scenario: a, input: x, criteria: {all: {of: [failure]}}}")
    assert criteria(resolved, "a")[0] == Criterion("all", Composite((SOUND,)), 1)


def test_a_scenario_that_removes_the_threshold_of_a_member_is_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(
            CONFIGURATION,
            "scenario: a\ninput: x\ncriteria:\n  latency: false\n  failure: {threshold: }\n",
        )
    assert (
        str(caught.value)
        == "refs.yaml:4:3: criteria.all.of[1]: found 'failure', expected a criterion with a"
        " threshold"
    )


def test_members_can_come_from_the_criteria_file() -> None:
    resolved = resolve(
        "criteria_file: common.json\ncriteria: {all: {scorer:"
        ' "pathgauge:Composite", of: [failure]}}',
        criteria_file='{"criteria": {"failure": 0}}',
    )
    assert resolved.evaluator.criteria == (
        Criterion("failure", Failure(), 0),
        Criterion("all", Composite((SOUND,))),
    )


def test_removing_the_threshold_of_a_member_in_the_criteria_file_is_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(
            "criteria_file: common.json\ncriteria:\n  latency: {threshold: }",
            criteria_file=(
                '{"criteria": {"latency": 5, "all": {"scorer":'
                ' "pathgauge:Composite", "of": ["latency"]}}}'
            ),
        )
    assert (
        str(caught.value)
        == "pathgauge.yaml:3:3: criteria.all.of[0]: found 'latency', expected a criterion with a"
        " threshold"
    )
