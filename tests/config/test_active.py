"""The evaluator, references and warnings that a configuration leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.config import Config, active
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.cost.latency_and_failure import Failure, Latency
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Invocation


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, so that messages show short paths."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**texts: str) -> None:
    for name, text in texts.items():
        Path(f"{name}.yaml").write_text(text, encoding="utf-8")


def resolve() -> ActiveConfig:
    return active.resolve(config.load(Path("pathgauge.yaml")))


def criteria(resolved: ActiveConfig, scenario: str) -> tuple[Criterion, ...]:
    invocation = Invocation("t", "s", "genai", scenario_id=scenario)
    return resolved.evaluator.criteria_for(resolved.references.match(invocation), invocation)


def test_the_defaults_score_without_references() -> None:
    resolved = active.resolve(Config())
    assert resolved.evaluator.criteria == (
        Criterion("failure", Failure()),
        Criterion("latency", Latency()),
    )
    assert (len(resolved.references), resolved.warnings, resolved.fingerprint) == (0, (), ())


def test_a_model_of_an_unknown_provider_is_an_error() -> None:
    write(
        pathgauge="""
judge:
  model: "local:m"
  providers: {local: {base_url: "http://127.0.0.1:1/v1", allow_private: true}}
criteria:
  safety_v1: {threshold: 1, model: "openai:gpt-4.1-mini"}
"""
    )
    with pytest.raises(ConfigError) as caught:
        resolve()
    assert (
        str(caught.value)
        == "pathgauge.yaml:6:14: criteria.safety_v1: found the model 'openai:gpt-4.1-mini' of the"
        " unknown provider openai, expected one of local"
    )


@pytest.mark.parametrize("in_shadow", [False, True])
def test_a_budget_in_dollars_needs_the_price_of_every_model_that_it_pays(
    *, in_shadow: bool
) -> None:
    own = "safety_v1: {threshold: 1, model: 'local:large'}"
    shadow = f"shadow: {{criteria: {{{own}}}, budget: {{calls_per_day: 5}}}}"
    write(
        pathgauge=f"""
judge:
  model: "local:m"
  providers: {{local: {{base_url: "http://127.0.0.1:1/v1", allow_private: true}}}}
  prices: {{"local:m": {{input: 1, output: 2}}}}
  budget: {{usd_per_day: 5}}
{shadow if in_shadow else f"criteria: {{{own}}}"}
"""
    )
    if in_shadow:  # another budget pays it, in calls
        assert resolve().shadow is not None
        return
    with pytest.raises(ConfigError) as caught:
        resolve()
    assert (
        str(caught.value)
        == "pathgauge.yaml:6:11: judge.budget: found a budget in US dollars and no price of"
        " local:large, expected one under judge.prices"
    )


def test_the_criteria_of_a_scenario_override_the_common_ones() -> None:
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
    assert criteria(resolved, "special") == (
        Criterion("tool_trajectory_f1", f1, 0.5),
        Criterion("latency", Latency(), 5),
    )
    assert criteria(resolved, "other") == (failure,)


def test_problems_in_the_criteria_of_scenarios_are_reported_with_their_positions() -> None:
    write(
        pathgauge="references: [refs.yaml]\ncriteria: {tool_trajectory_f1: 0.8}",
        refs=(
            "- scenario: a\n  criteria: {tool_trajectory_f1: 7}\n- scenario: b\n  criteria:\n   "
            " failur: 0\n"
        ),
    )
    with pytest.raises(ConfigError) as caught:
        resolve()
    assert str(caught.value).split("\n") == [
        (
            "refs.yaml:2:34: [0].criteria.tool_trajectory_f1.threshold: found 7, expected a number"
            " from 0 to 1"
        ),
        "refs.yaml:5:5: [1].criteria.failur: no scorer 'failur'; did you mean 'failure'?",
    ]


def test_problems_in_references_prevent_the_start() -> None:
    write(pathgauge="references: [refs.yaml]", refs="scenario: a\nscenario: b")
    with pytest.raises(
        ConfigError,
        match=(
            r"^refs\.yaml:2:1: scenario: found the key again, expected it once \(first in line 1\)$"
        ),
    ):
        resolve()


def test_settings_that_are_probably_unintended_cause_warnings() -> None:
    write(
        pathgauge=(
            "references: [refs/*.yaml]\ncriteria: {tool_trajectory_f1: 0.8, trajectory_recall: ,"
            " failure: }"
        )
    )
    assert resolve().warnings == (
        "pathgauge.yaml:1:14: references[0]: no file matches the references 'refs/*.yaml' in .",
        "there are no references, which these criteria need: tool_trajectory_f1, trajectory_recall",
    )


def test_several_samples_at_temperature_0_cause_a_warning() -> None:
    write(
        pathgauge="""
judge:
  model: "local:m"
  providers: {local: {base_url: "http://127.0.0.1:1/v1", allow_private: true}}
criteria:
  safety_v1: {samples: 3}
  of_billing: {scorer: safety_v1, agent: billing, judge_model_options: {num_samples: 5}}
  warm: {scorer: safety_v1, samples: 3, temperature: 0.7}
  default: {scorer: safety_v1, samples: 3, temperature: null}
  once: {scorer: safety_v1}
"""
    )
    assert resolve().warnings == (
        "several samples at temperature 0 repeat the same answer; set a higher temperature, or"
        " samples: 1, for safety_v1, of_billing",
    )


def test_the_fingerprint_changes_with_the_reference_files() -> None:
    write(pathgauge="references: ['refs*.yaml']", refs="{scenario: a, input: x}")
    before = resolve()
    assert active.fingerprint(config.load(Path("pathgauge.yaml"))) == before.fingerprint
    write(refs2="{scenario: b, input: x}")
    assert active.fingerprint(config.load(Path("pathgauge.yaml"))) != before.fingerprint


@pytest.mark.parametrize(
    "shadow",
    ["{references: [other.yaml]}", "{criteria: {failure: 0}}", "false"],
)
def test_known_references_take_the_place_of_files_that_are_invalid_by_now(shadow: str) -> None:
    write(
        pathgauge=f"""
references: [refs.yaml]
criteria: {{tool_trajectory_f1: 0.8}}
scenario: {{expected_interval: 1h, match_user_input: true}}
shadow: {shadow}
""",
        refs="{scenario: a, input: x, expected_tools: [t], criteria: {latency: 5}}",
        other="{scenario: b, input: y, expected_tools: [u]}",
    )
    before = resolve()
    write(refs="{", other="{")
    after = active.resolve(
        config.load(Path("pathgauge.yaml")), known=active.KnownReferences.of(before)
    )
    assert _content(after) == _content(before)


def _content(resolved: ActiveConfig) -> object:
    evaluator, shadow = resolved.evaluator, resolved.shadow
    asked = Invocation("t", "s", "genai", user_input="x")
    return (
        [*resolved.references],
        resolved.references.match(asked),
        evaluator.criteria,
        evaluator.overrides,
        shadow and ([*shadow.references], shadow.evaluator.overrides, shadow.setup),
    )


def test_objectives_too_low_for_an_alert_are_warnings_with_their_positions() -> None:
    write(
        pathgauge="""
references: [refs.yaml]
criteria:
  latency: {threshold: 5, objective: 0.7}
  failure: {threshold: 0, objective: 0.95}
""",
        refs="""
- {scenario: plain, input: x}
- scenario: special
  input: x
  criteria:
    failure: {objective: 0.5}
""",
    )
    warning = (
        "with the objective {} the burn rate is at most {}, so the alerts at {} can never fire;"
        " they need an objective above 0.8333"
    )
    resolved = resolve()
    assert resolved.warnings == (
        f"pathgauge.yaml:4:38: criteria.latency.objective: {warning.format(0.7, 3.33, 6)}",
        f"refs.yaml:6:26: [1].criteria.failure.objective: {warning.format(0.5, 2, '6 and 3')}",
    )
    assert [criterion.objective for criterion in criteria(resolved, "special")] == [0.7, 0.5]


def test_the_expected_interval_of_a_reference_overrides_the_common_one() -> None:
    references = "- {scenario: plain, input: x}\n- {scenario: nightly, expected_interval: 1d}"
    for configured, expected in [
        ("", [None, 86_400.0]),
        ("scenario: {expected_interval: 1h30m}", [5400.0, 86_400.0]),
    ]:
        write(pathgauge=f"references: [refs.yaml]\n{configured}", refs=references)
        assert [reference.expected_interval for reference in resolve().references] == expected


def test_an_interval_must_be_positive() -> None:
    write(pathgauge="scenario: {expected_interval: 0}")
    with pytest.raises(
        ConfigError,
        match=(
            r"^pathgauge\.yaml:1:31: scenario\.expected_interval: found 0, expected greater than 0$"
        ),
    ):
        config.load(Path("pathgauge.yaml"))


SUITE = """
references: [refs.yaml]
criteria:
  tool_trajectory_f1: {threshold: 0.8, over: agent}
  failure: {over: scenario, threshold: 0.1}
"""


def test_a_scenario_can_switch_off_a_criterion_over_an_agent() -> None:
    write(
        pathgauge=SUITE,
        refs="""
- {scenario: plain, input: x}
- scenario: special
  input: x
  criteria: {tool_trajectory_f1: false, failure: 0.3}
""",
    )
    names = {
        scenario: [(one.name, one.threshold) for one in criteria(resolve(), scenario)]
        for scenario in ("plain", "special")
    }
    assert names == {
        "plain": [("tool_trajectory_f1", 0.8), ("failure", 0.1)],
        "special": [("failure", 0.3)],
    }


@pytest.mark.parametrize("own", ["0.5", "{over: scenario}", "{over: suite, threshold: 0.5}"])
def test_a_scenario_cannot_change_a_criterion_over_an_agent(own: str) -> None:
    write(
        pathgauge=SUITE,
        refs=f"""
- scenario: special
  input: x
  criteria: {{tool_trajectory_f1: {own}}}
""",
    )
    with pytest.raises(ConfigError) as caught:
        resolve()
    assert str(caught.value).splitlines()[0] == (
        "refs.yaml:4:14: [0].criteria.tool_trajectory_f1: found an override of a criterion with"
        " over: agent, expected none, or false to leave this scenario out"
    )
