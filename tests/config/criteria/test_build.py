"""Criteria: thresholds, options, aliases, agents, functions, criteria made of others, merging."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from pathgauge.collector.cli.output import scorer_catalogue
from pathgauge.collector.config import criteria
from pathgauge.collector.config.criteria import Location, objectives
from pathgauge.collector.config.criteria.syntax import COMMON_KEYS
from pathgauge.collector.config.plugins.scorers import SCORERS, scorer_class
from pathgauge.collector.core.documents import ConfigError, Document, yaml_source
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.adapters.functions import from_function
from pathgauge.scorers.adapters.inputs import SHAPES
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.composite.composite import Composite, CostOfPassed, Member
from pathgauge.scorers.cost.latency_and_failure import Latency
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

SECONDS = f"{__name__}:Seconds"
BRIEF = f"{__name__}:brief"
MENTIONS = f"{__name__}:Mentions"
COMPOSITE = "'pathgauge:Composite'"
OF_ALL = (
    "threshold, objective, scorer, takes, agent, view, include_intermediate_responses_in_final,"
    " over, aggregate, each, k"
)
"""The keys of every criterion."""
COST = "'pathgauge:CostOfPassed'"


@dataclass(frozen=True)
class Seconds:
    """A scorer without an upper limit."""

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


def brief(result: Json, scenario: Json, max_words: int = 50, units: Json = "words") -> bool:
    """Whether the answer is short."""
    return len(result["final_response"].split()) <= max_words


def unnamed(output: Json, seconds: float = 1) -> bool:
    return bool(output) and seconds > 0


@dataclass
class Mentions:
    """Whether the output has a word."""

    word: str

    def __post_init__(self) -> None:
        if not self.word:
            raise ValueError("word is empty")

    def evaluate(self, ctx: Json) -> bool:
        return self.word in ctx.output


def build(text: str, changed: list[str] | None = None) -> tuple[Criterion, ...]:
    (document,) = yaml_source.read(text, "c.yaml")
    return criteria.build(document.data, Location(document, ()), changed)


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
        (
            "tool_trajectory_f1: {threshold: , ordered: false}",
            Criterion("tool_trajectory_f1", ToolTrajectoryF1(ordered=False), None),
        ),
        (
            "tool_trajectory_f1: {threshold: 0.8, match_mode: name_and_args}",
            Criterion("tool_trajectory_f1", ToolTrajectoryF1("name_and_args"), 0.8),
        ),
        (
            "tool_trajectory_f1: {threshold: 0.8, matchMode: name_and_args}",
            Criterion("tool_trajectory_f1", ToolTrajectoryF1("name_and_args"), 0.8),
        ),
        (
            "strict: {scorer: tool_trajectory_f1, threshold: 0.5}",
            Criterion("strict", ToolTrajectoryF1(), 0.5),
        ),
        (
            f"slow: {{scorer: '{SECONDS}', threshold: 90, perCall: true}}",
            Criterion("slow", Seconds(per_call=True), 90),
        ),
        (f"'{SECONDS}': 2", Criterion(SECONDS, Seconds(), 2)),
        (
            "f1: {scorer: tool_trajectory_f1, agent: billing}",
            Criterion("f1", OfAgent(ToolTrajectoryF1(), "billing")),
        ),
        (
            "latency: {threshold: 5, agent: billing, view: subtree}",
            Criterion("latency", OfAgent(Latency(), "billing", "subtree"), 5),
        ),
        ("latency: {agent: , view: }", Criterion("latency", Latency())),
        ("latency: {threshold: 5, objective: 0.95}", Criterion("latency", Latency(), 5, 0.95)),
        ("latency: {threshold: 5, objective: 0.01}", Criterion("latency", Latency(), 5, 0.01)),
        ("latency: {threshold: 5, objective: }", Criterion("latency", Latency(), 5)),
        (
            (
                f"short: {{scorer: '{BRIEF}', threshold: 1, maxWords: 20, units: [a, {{b: c}}],"
                " scenario: {topic: tea}}"
            ),
            Criterion(
                "short",
                from_function(
                    brief, max_words=20, units=["a", {"b": "c"}], scenario={"topic": "tea"}
                ),
                1,
            ),
        ),
        (
            (
                f"many: {{scorer: '{BRIEF}', threshold: 40, low: -1, high: 100, higher_is_better:"
                " false}"
            ),
            Criterion("many", from_function(brief, low=-1, high=100, higher_is_better=False), 40),
        ),
        (
            f"m: {{scorer: '{MENTIONS}', word: tea}}",
            Criterion("m", from_function(Mentions, word="tea")),
        ),
        (
            f"u: {{scorer: '{__name__}:unnamed', takes: result}}",
            Criterion("u", from_function(unnamed, takes=["result"])),
        ),
        (
            f"u: {{scorer: '{__name__}:unnamed', takes: [instance], seconds: 3, agent: billing}}",
            Criterion(
                "u", OfAgent(from_function(unnamed, takes=["instance"], seconds=3), "billing")
            ),
        ),
    ],
)
def test_a_criterion_is_a_scorer_with_options_and_a_threshold(
    text: str, expected: Criterion
) -> None:
    assert build(text) == (expected,)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *(
            (written, f"found {shown}, expected a share of passes between 0 and 1, such as 0.95")
            for written, shown in [
                ("0", "0"),
                ("1", "1"),
                ("-0.5", "-0.5"),
                ("95", "95"),
                (".nan", "nan"),
                ("true", "true"),
                ("'0.9'", "'0.9'"),
            ]
        ),
        (
            "1e-17",
            "found 1e-17, for which no burn-rate alert can fire, expected a higher objective",
        ),
    ],
)
def test_an_invalid_objective_is_rejected(written: str, expected: str) -> None:
    assert (
        message(f"latency: {{threshold: 5, objective: {written}}}")
        == f"c.yaml:1:36: latency.objective: {expected}"
    )


def test_an_objective_needs_a_threshold() -> None:
    expected = (
        "found an objective without a threshold, expected both: only a threshold makes verdicts"
    )
    assert message("latency: {objective: 0.9}") == f"c.yaml:1:22: latency.objective: {expected}"


@pytest.mark.parametrize(
    ("objective", "silent"),
    [
        (None, None),
        (0.99, None),
        (0.8334, None),
        (
            0.8333,
            (
                "the burn rate is at most 6, so the alerts at 6 can never fire; they need an"
                " objective above 0.8333"
            ),
        ),
        (
            0.67,
            (
                "the burn rate is at most 3.03, so the alerts at 6 can never fire; they need"
                " an objective above 0.8333"
            ),
        ),
        (
            0.5,
            (
                "the burn rate is at most 2, so the alerts at 6 and 3 can never fire; they"
                " need an objective above 0.8333"
            ),
        ),
    ],
)
def test_an_objective_too_low_for_some_alerts_is_a_warning(
    objective: float | None, silent: str | None
) -> None:
    warnings = list(objectives.warnings(Criterion("latency", Latency(), 5, objective)))
    assert warnings == ([] if silent is None else [f"with the objective {objective:g} {silent}"])


def test_the_burn_rate_is_highest_when_everything_fails() -> None:
    for objective in (0.01, 0.5, 0.9, 0.999):
        assert objectives.max_burn_rate(objective) == pytest.approx(1.0 / (1 - objective))


def test_criteria_keep_their_order_and_false_switches_one_off() -> None:
    names = [
        criterion.name for criterion in build("latency: 5\nfailure: false\ntool_trajectory_f1: 1")
    ]
    assert names == ["latency", "tool_trajectory_f1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "tool_trajectory_f1: 7.0",
            "1:21: tool_trajectory_f1.threshold: found 7.0, expected a number from 0 to 1",
        ),
        (
            "tool_trajectory_f1: -0.1",
            "1:21: tool_trajectory_f1.threshold: found -0.1, expected a number from 0 to 1",
        ),
        ("latency: -1", "1:10: latency.threshold: found -1, expected a number from 0"),
        (
            "tool_trajectory_f1: .nan",
            (
                "1:21: tool_trajectory_f1: found nan, expected a threshold (a number) or a mapping"
                " of threshold and options"
            ),
        ),
        (
            "tool_trajectory_f1: {threshold: .nan}",
            "1:33: tool_trajectory_f1.threshold: found nan, expected a number from 0 to 1",
        ),
        (
            "tool_trajectory_f1: {threshold: .inf}",
            "1:33: tool_trajectory_f1.threshold: found inf, expected a number from 0 to 1",
        ),
        (
            "latency: {threshold: .inf}",
            "1:22: latency.threshold: found inf, expected a number from 0",
        ),
        (
            f"latency: {10**309}",
            (
                f"1:10: latency: found 1{'0' * 59}…, expected a threshold (a number) or a mapping"
                " of threshold and options"
            ),
        ),
        (
            f"latency: {{threshold: {10**309}}}",
            f"1:22: latency.threshold: found 1{'0' * 59}…, expected a number from 0",
        ),
        (
            "tool_trajectory_f1: {threshold: '1'}",
            "1:33: tool_trajectory_f1.threshold: found '1', expected a number from 0 to 1",
        ),
        (
            "tool_trajectory_f1: {threshold: true}",
            "1:33: tool_trajectory_f1.threshold: found true, expected a number from 0 to 1",
        ),
        (
            "tool_trajectory_f1: true",
            (
                "1:21: tool_trajectory_f1: found true, expected a threshold (a number) or a mapping"
                " of threshold and options"
            ),
        ),
        (
            "tool_trajectory_f1: [1]",
            (
                "1:21: tool_trajectory_f1: found a list, expected a threshold (a number) or a"
                " mapping of threshold and options"
            ),
        ),
        (
            "tool_trajectry_f1: 1",
            (
                "1:1: tool_trajectry_f1: no scorer 'tool_trajectry_f1'; did you mean"
                " 'tool_trajectory_f1'?"
            ),
        ),
        (
            "strict: {scorer: tool_trajectry_f1}",
            (
                "1:18: strict.scorer: no scorer 'tool_trajectry_f1'; did you mean"
                " 'tool_trajectory_f1'?"
            ),
        ),
        ("strict: {scorer: 1}", "1:18: strict.scorer: found 1, expected the name of a scorer"),
        (
            "strict: {scorer: 'nowhere:Scorer'}",
            "1:18: strict.scorer: no module 'nowhere'; is its folder in PYTHONPATH?",
        ),
        (
            "per_turn_user_simulator_quality_v1: 1.0",
            (
                "1:1: per_turn_user_simulator_quality_v1: found"
                " 'per_turn_user_simulator_quality_v1', expected a criterion for agents: criteria"
                " for simulated users are not available in this version"
            ),
        ),
        (
            "m: {scorer: mean_of_turns, of: latnecy}\nlatency: 1",
            (
                "1:32: m.of: found 'latnecy', expected the name of another criterion; did you mean"
                " 'latency'?"
            ),
        ),
        (
            "m: {scorer: mean_of_turns, of: session_turns}\nsession_turns: 1",
            (
                "1:32: m.of: found 'session_turns', which scores sessions, expected a criterion for"
                " single turns"
            ),
        ),
        (
            "all: {scorer: composite, of: [session_turns], threshold: 1}\nsession_turns: 1",
            (
                "1:31: all.of[0]: found 'session_turns', which scores sessions, expected one for"
                " single invocations"
            ),
        ),
        (
            "session_turns: {threshold: 1, agent: helper}",
            (
                "1:31: session_turns.agent: found agent of a criterion for whole sessions, expected"
                " none"
            ),
        ),
        (
            "session_resolved: {threshold: 1, resolved: []}",
            "1:19: session_resolved: resolved: found an empty list, expected an outcome",
        ),
        (
            "tool_trajectory_f1: {match_mode: name_onl}",
            (
                "1:34: tool_trajectory_f1.match_mode: found 'name_onl', expected 'name_only',"
                " 'name_and_args' or 'name_and_required_args'; did you mean 'name_only'?"
            ),
        ),
        (
            f"s: {{scorer: '{SECONDS}', ignor_args: true}}",
            (
                f"1:{len(SECONDS) + 17}: s.ignor_args: found an unknown key, expected one of"
                f" per_call, max_calls, {OF_ALL}"
            ),
        ),
        (
            f"s: {{scorer: '{SECONDS}', maxCall: 3}}",
            (
                f"1:{len(SECONDS) + 17}: s.maxCall: found an unknown key, expected one of per_call,"
                f" max_calls, {OF_ALL}; did you mean 'max_calls'?"
            ),
        ),
        (
            "tool_trajectory_f1: {ordered: on}",
            "1:31: tool_trajectory_f1.ordered: found 'on', expected true or false",
        ),
        (
            "tool_trajectory_f1: {ordered: 0}",
            "1:31: tool_trajectory_f1.ordered: found 0, expected true or false",
        ),
        (
            f"s: {{scorer: '{SECONDS}', max_calls: true}}",
            f"1:{len(SECONDS) + 28}: s.max_calls: found true, expected a number",
        ),
        (
            f"u: {{scorer: '{__name__}:unnamed', takes: result, seconds: true}}",
            f"1:{len(__name__) + 49}: u.seconds: found true, expected a number",
        ),
        (
            "failure: {x: 1}",
            f"1:11: failure.x: found an unknown key, expected one of {OF_ALL}",
        ),
        (
            "response_match_score: {treshold: 0.8}",
            (
                "1:24: response_match_score.treshold: found an unknown key, expected one of"
                f" stemmer, max_tokens, {OF_ALL}; did you mean 'threshold'?"
            ),
        ),
        (
            "tool_trajectory_f1: {matchMode: name_only, match_mode: name_only}",
            (
                "1:21: tool_trajectory_f1: found a key in camelCase and in snake_case, expected it"
                " once"
            ),
        ),
        (
            "trajectory_single_tool_use: 1",
            "1:29: trajectory_single_tool_use.tool_name: found nothing, expected this key",
        ),
        (
            f"s: {{scorer: '{SECONDS}', derived: 1}}",
            (
                f"1:{len(SECONDS) + 17}: s.derived: found an unknown key, expected one of per_call,"
                f" max_calls, {OF_ALL}"
            ),
        ),
        (f"s: {{scorer: '{SECONDS}', max_calls: 0}}", "1:4: s: max_calls must be at least 1"),
        ("latency: {agent: 3}", "1:18: latency.agent: found 3, expected the name of an agent"),
        ("latency: {agent: ''}", "1:18: latency.agent: found '', expected the name of an agent"),
        (
            "latency: {agent: a, view: subtre}",
            (
                "1:27: latency.view: found 'subtre', expected 'own' or 'subtree'; did you mean"
                " 'subtree'?"
            ),
        ),
        (
            "latency: {agent: a, view: [own]}",
            "1:27: latency.view: found a list, expected 'own' or 'subtree'",
        ),
        (
            "latency: {view: own}",
            "1:11: latency.view: found a view without an agent, expected both",
        ),
        (
            f"s: {{scorer: '{BRIEF}', max_word: 3}}",
            (
                f"1:{len(BRIEF) + 17}: s.max_word: found an unknown key, expected one of low, high,"
                f" higher_is_better, max_words, units, scenario, {OF_ALL}; did you mean"
                " 'max_words'?"
            ),
        ),
        (
            f"s: {{scorer: '{BRIEF}', max_words: few}}",
            f"1:{len(BRIEF) + 28}: s.max_words: found 'few', expected a whole number",
        ),
        (
            f"s: {{scorer: '{BRIEF}', scenario: 3}}",
            f"1:{len(BRIEF) + 27}: s.scenario: found 3, expected a mapping",
        ),
        (
            f"s: {{scorer: '{BRIEF}', high: 9, threshold: 10}}",
            f"1:{len(BRIEF) + 37}: s.threshold: found 10, expected a number from 0 to 9",
        ),
        (
            f"s: {{scorer: '{BRIEF}', high: -1}}",
            "1:4: s: high: found -1, expected more than low, which is 0",
        ),
        (f"s: {{scorer: '{MENTIONS}'}}", "1:4: s.word: found nothing, expected this key"),
        (f"s: {{scorer: '{MENTIONS}', word: ''}}", "1:4: s: ValueError: word is empty"),
        (
            f"s: {{scorer: '{BRIEF}', takes: [row]}}",
            (
                f"1:13: s.scorer: '{BRIEF}' cannot be a scorer: takes: found 'row', expected one of"
                f" {', '.join(SHAPES)}"
            ),
        ),
        (
            f"s: {{scorer: '{BRIEF}', takes: 3}}",
            f"1:{len(BRIEF) + 24}: s.takes: found 3, expected a list of {', '.join(SHAPES)}",
        ),
        (
            f"s: {{scorer: '{BRIEF}', takes: [3]}}",
            f"1:{len(BRIEF) + 24}: s.takes: found a list, expected a list of {', '.join(SHAPES)}",
        ),
        (
            "latency: {takes: [result]}",
            (
                "1:1: latency: 'latency' is a scorer as it stands, expected a function for takes to"
                " say what it takes"
            ),
        ),
        (
            "tool_trajectory_f1: {threshold: 2, ordered: maybe}\nfoo: []",
            (
                "1:33: tool_trajectory_f1.threshold: found 2, expected a number from 0 to"
                " 1\nc.yaml:1:45: tool_trajectory_f1.ordered: found 'maybe', expected true or"
                " false\nc.yaml:2:6: foo: found a list, expected a threshold (a number) or a"
                " mapping of threshold and options"
            ),
        ),
    ],
)
def test_a_problem_is_reported_with_its_position(text: str, expected: str) -> None:
    assert message(text) == f"c.yaml:{expected}"


F1, FAST = Member("tool_trajectory_f1", ToolTrajectoryF1(), 0.8), Member("latency", Latency(), 5)
BOTH = "tool_trajectory_f1: 0.8\nlatency: 5\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                f"{BOTH}all: {{scorer: {COMPOSITE}, of: [tool_trajectory_f1, latency], threshold:"
                " 0.9}"
            ),
            Criterion("all", Composite((F1, FAST)), 0.9),
        ),
        (
            f"{BOTH}all: {{scorer: {COMPOSITE}, of: [latency], notEvaluated: fail}}",
            Criterion("all", Composite((FAST,), "fail")),
        ),
        (
            f"{BOTH}cost: {{scorer: {COST}, of: [latency], measure: tool_calls, threshold: 3}}",
            Criterion("cost", CostOfPassed((FAST,), measure="tool_calls"), 3),
        ),
        (
            f"{BOTH}off: false\nall: {{scorer: {COMPOSITE}, of: [off, latency]}}",
            Criterion("all", Composite((FAST,))),
        ),
        (
            (
                f"{BOTH}own: {{scorer: latency, agent: a, threshold: 1}}\nall: {{scorer:"
                f" {COMPOSITE}, of: [own], agent: b}}"
            ),
            Criterion("all", OfAgent(Composite((Member("own", OfAgent(Latency(), "a"), 1),)), "b")),
        ),
        (
            (
                f"{BOTH}inner: {{scorer: {COMPOSITE}, of: [latency], threshold: 1}}\nall: {{scorer:"
                f" {COMPOSITE}, of: [inner]}}"
            ),
            Criterion("all", Composite((Member("inner", Composite((FAST,)), 1),))),
        ),
    ],
)
def test_a_criterion_is_made_of_others(text: str, expected: Criterion) -> None:
    assert build(text)[-1] == expected


def test_the_members_of_a_criterion_may_come_after_it() -> None:
    built = build(f"all: {{scorer: {COMPOSITE}, of: [latency]}}\nlatency: 5")
    assert built == (Criterion("all", Composite((FAST,))), Criterion("latency", Latency(), 5))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"all: {{scorer: {COMPOSITE}}}",
            "1:6: all.of: found nothing, expected a list of criteria",
        ),
        (
            f"all: {{scorer: {COMPOSITE}, of: }}",
            "1:42: all.of: found nothing, expected a list of criteria",
        ),
        (
            f"all: {{scorer: {COMPOSITE}, of: []}}",
            "1:42: all.of: found an empty list, expected a list of criteria",
        ),
        (
            f"all: {{scorer: {COMPOSITE}, of: latency}}",
            "1:42: all.of: found 'latency', expected a list of criteria",
        ),
        (
            f"all: {{scorer: {COMPOSITE}, of: [latncy, 3]}}\nlatency: 5",
            (
                "1:43: all.of[0]: found 'latncy', expected the name of a criterion; did you mean"
                " 'latency'?\nc.yaml:1:51: all.of[1]: found 3, expected the name of a criterion"
            ),
        ),
        (
            f"all: {{scorer: {COMPOSITE}, of: [latency]}}\nlatency:",
            "1:43: all.of[0]: found 'latency', expected a criterion with a threshold",
        ),
        (
            f"all: {{scorer: {COMPOSITE}, of: [latency]}}\nlatency: false",
            "1:42: all.of: found only criteria that are switched off, expected one that is not",
        ),
        (
            (
                f"a: {{scorer: {COMPOSITE}, of: [b], threshold: 1}}\nb: {{scorer: {COMPOSITE}, of:"
                " [a], threshold: 1}"
            ),
            (
                "1:41: a.of[0]: found 'b', expected no criterion that is made of itself:"
                " b -> a -> b\n"
                "c.yaml:2:41: b.of[0]: found 'a', expected no criterion that is made of itself:"
                " a -> b -> a"
            ),
        ),
        (
            f"a: {{scorer: {COMPOSITE}, of: [a]}}",
            "1:41: a.of[0]: found 'a', expected no criterion that is made of itself: a -> a",
        ),
        (
            f"all: {{scorer: {COMPOSITE}, of: [latency], not_evaluated: skip}}\nlatency: -1",
            (
                "1:68: all.not_evaluated: found 'skip', expected 'ignore' or 'fail'\n"
                "c.yaml:2:10: latency.threshold: found -1, expected a number from 0"
            ),
        ),
        (
            f"all: {{scorer: {COMPOSITE}, of: [latency], treshold: 1}}\nlatency: 3",
            (
                "1:53: all.treshold: found an unknown key, expected one of of, not_evaluated,"
                f" {OF_ALL}; did you mean 'threshold'?"
            ),
        ),
    ],
)
def test_a_problem_in_a_member_is_reported_with_its_position(text: str, expected: str) -> None:
    assert message(text) == f"c.yaml:{expected}"


def test_a_criterion_made_of_a_changed_one_changes_too() -> None:
    chain = (
        f"latency: 5\nfailure: 0\ninner: {{scorer: {COMPOSITE}, of: [latency], threshold:"
        f" 1}}\nouter: {{scorer: {COMPOSITE}, of: [inner, failure]}}\nother: {{scorer: {COMPOSITE},"
        " of: [failure]}"
    )
    assert [criterion.name for criterion in build(chain, ["latency"])] == [
        "latency",
        "inner",
        "outer",
    ]
    assert [criterion.name for criterion in build(chain, ["inner"])] == ["inner", "outer"]
    assert [criterion.name for criterion in build(chain, ["failure"])] == [
        "failure",
        "outer",
        "other",
    ]
    assert build(chain, []) == ()


def test_without_positions_a_problem_is_reported_with_its_keys() -> None:
    with pytest.raises(
        ConfigError, match=r"^criteria\.failure\.threshold: found 2, expected a number from 0 to 1$"
    ):
        criteria.build({"failure": 2}, Location(Document("", None), ("criteria",)))


@pytest.mark.parametrize("name", SCORERS.names())
def test_no_option_of_a_scorer_has_the_name_of_a_common_key(name: str) -> None:
    options = {
        option.name for option in scorer_catalogue.describe(name, scorer_class(name)).options
    }
    assert options & {*COMMON_KEYS} == set()


@pytest.mark.parametrize("name", sorted(criteria.NOT_AVAILABLE))
def test_criteria_that_are_not_available_are_not_installed(name: str) -> None:
    assert message(f"{name}: 1").endswith("are not available in this version")


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        (0.8, 0.5, {"threshold": 0.5}),
        (
            {"threshold": 0.8, "matchMode": "name_only"},
            0.5,
            {"threshold": 0.5, "match_mode": "name_only"},
        ),
        (0.8, {"match_mode": "name_only"}, {"threshold": 0.8, "match_mode": "name_only"}),
        (
            {"match_mode": "name_only"},
            {"matchMode": "name_and_args"},
            {"match_mode": "name_and_args"},
        ),
        (
            {"threshold": 0.8, "ordered": False},
            {"threshold": None},
            {"threshold": None, "ordered": False},
        ),
        (0.8, None, {"threshold": 0.8}),
        (0.8, False, False),
        (False, 0.5, 0.5),
        ({"threshold": 0.8, "ordered": False}, {"scorer": "failure"}, {"scorer": "failure"}),
        ({"scorer": "latency", "threshold": 9}, 5, {"scorer": "latency", "threshold": 5}),
        (0.8, "nonsense", "nonsense"),
    ],
)
def test_criteria_are_merged(below: Json, above: Json, expected: Json) -> None:
    assert criteria.merge({"x": below, "y": 1}, {"x": above, "z": 2}) == {
        "x": expected,
        "y": 1,
        "z": 2,
    }
