"""From a configuration to what the service runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector import config, setup
from collector.config import Config
from collector.documents import ConfigError
from collector.evaluator import Criterion
from collector.setup import Setup
from scorers.runs.efficiency import Failure, Latency
from scorers.trajectories.trajectory import ToolTrajectoryF1
from scorers.types import Invocation


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, so that messages show short paths."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**texts: str) -> None:
    for name, text in texts.items():
        Path(f"{name}.yaml").write_text(text, encoding="utf-8")


def resolve() -> Setup:
    return setup.resolve(config.load(Path("pathgauge.yaml")))


def criteria(resolved: Setup, scenario: str) -> tuple[Criterion, ...]:
    invocation = Invocation("t", "s", "genai", scenario_id=scenario)
    return resolved.evaluator.criteria_for(resolved.references.match(invocation))


def test_the_defaults_score_without_references() -> None:
    resolved = setup.resolve(Config())
    assert resolved.evaluator.criteria == (Criterion("failure", Failure()), Criterion("latency", Latency()))
    assert (len(resolved.references), resolved.warnings, resolved.fingerprint) == (0, (), ())


def test_the_criteria_of_a_scenario_lie_over_the_common_ones() -> None:
    write(
        pathgauge="""
references: [refs.yaml]
criteria:
  tool_trajectory_f1: {threshold: 0.8, match_mode: name_and_args}
  failure: 0
""",
        refs="""
- {scenario: plain, input: x}
- scenario: special
  input: x
  criteria:
    latency: 5
    failure: false
    tool_trajectory_f1: 0.5
""",
    )
    resolved = resolve()
    f1, failure = ToolTrajectoryF1("name_and_args"), Criterion("failure", Failure(), 0)
    assert criteria(resolved, "plain") == (Criterion("tool_trajectory_f1", f1, 0.8), failure)
    assert criteria(resolved, "special") == (Criterion("tool_trajectory_f1", f1, 0.5), Criterion("latency", Latency(), 5))
    assert criteria(resolved, "other") == (failure,)


def test_mistakes_in_the_criteria_of_scenarios_are_named_with_their_place() -> None:
    write(
        pathgauge="references: [refs.yaml]\ncriteria: {tool_trajectory_f1: 0.8}",
        refs="- scenario: a\n  criteria: {tool_trajectory_f1: 7}\n- scenario: b\n  criteria:\n    failur: 0\n",
    )
    with pytest.raises(ConfigError) as caught:
        resolve()
    assert str(caught.value).split("\n") == [
        "refs.yaml:2:34: [0].criteria.tool_trajectory_f1.threshold: found 7, expected a number from 0 to 1",
        "refs.yaml:5:5: [1].criteria.failur: no scorer 'failur'; did you mean 'failure'?",
    ]


def test_mistakes_in_references_stop_the_start() -> None:
    write(pathgauge="references: [refs.yaml]", refs="scenario: a\nscenario: b")
    with pytest.raises(ConfigError, match=r"^refs\.yaml:2:1: scenario: found the key again, expected it once \(first in line 1\)$"):
        resolve()


def test_what_is_probably_not_meant_is_a_warning() -> None:
    write(pathgauge="references: [refs/*.yaml]\ncriteria: {tool_trajectory_f1: 0.8, trajectory_recall: , failure: }")
    assert resolve().warnings == (
        "no file matches the references 'refs/*.yaml' in .",
        "there are no references, which these criteria need: tool_trajectory_f1, trajectory_recall",
    )


def test_the_fingerprint_tells_when_to_resolve_again() -> None:
    write(pathgauge="references: ['refs*.yaml']", refs="{scenario: a, input: x}")
    before = resolve()
    assert setup.fingerprint(config.load(Path("pathgauge.yaml"))) == before.fingerprint
    write(refs2="{scenario: b, input: x}")
    assert setup.fingerprint(config.load(Path("pathgauge.yaml"))) != before.fingerprint
