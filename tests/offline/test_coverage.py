"""How a gate counts what was not scored, and what was not run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from pathgauge import Failure, Reference, ReferenceTurn, Score, ToolTrajectoryF1
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.evaluations.aggregation import Aggregation
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator, Result
from pathgauge.collector.core.references import UNMATCHED, Match, Unmatched
from pathgauge.collector.offline.coverage import Coverage, required_scenarios
from pathgauge.collector.offline.gate import Requirements, judge
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.types import Reason

F1 = Criterion("f1", ToolTrajectoryF1(), 0.5)
NO_THRESHOLD = Criterion("shown", ToolTrajectoryF1())
FAILURE = Criterion("failure", Failure(), 0.0)
REFUND = Reference("refund", (ReferenceTurn(), ReferenceTurn()))
MATCHED = Match(REFUND, REFUND.turns[0], 0)


def evaluation(*results: Result, match: Match = MATCHED, scenario: str = "refund") -> Evaluation:
    return Evaluation(invocation(scenario_id=scenario), match, results, "root_ended")


def scored(criterion: Criterion = F1, value: float = 1.0) -> Result:
    return Result(criterion, Score(value), criterion.verdict(value))


def unscored(reason: Reason, criterion: Criterion = F1) -> Result:
    return Result(criterion, Score.not_evaluated(reason), "not_evaluated")


def error() -> Result:
    return Result(F1, Score(None, None, "boom"), "error")


def covered(*evaluations: Evaluation, evaluator: Evaluator | None = None) -> tuple[Coverage, ...]:
    return judge([Replayed("traces", evaluations, (), ())], evaluator).coverage


def test_every_invocation_that_a_criterion_applies_to_counts() -> None:
    evaluations = [
        evaluation(scored(), scored(NO_THRESHOLD), scored(FAILURE, 0.0)),
        evaluation(unscored("args_not_recorded"), unscored("args_not_recorded", NO_THRESHOLD)),
        evaluation(unscored("args_not_recorded")),
        evaluation(unscored("judge_timeout")),
        evaluation(error()),
        evaluation(unscored("no_reference"), match=Match(unmatched="unknown_scenario")),
    ]
    found = covered(*evaluations)
    assert found == (
        Coverage("f1", 5, 1, {"args_not_recorded": 2, "judge_timeout": 1, "error": 1}),
        Coverage("failure", 1, 1, {}),
    )
    assert [str(one) for one in found] == [
        "f1 scored 1 of 5 invocations (2 args_not_recorded, 1 judge_timeout, 1 error)",
        "failure scored 1 of 1 invocation",
    ]


@pytest.mark.parametrize("reason", ["no_reference", "not_applicable", "undefined", "not_sampled"])
def test_a_criterion_that_does_not_apply_does_not_count(reason: Reason) -> None:
    assert covered(evaluation(unscored(reason))) == ()


@pytest.mark.parametrize("why", UNMATCHED)
def test_an_invocation_that_should_have_a_reference_counts(why: Unmatched) -> None:
    """Its criteria that need a reference have no results at all."""
    evaluator = Evaluator((F1, NO_THRESHOLD, FAILURE))
    found = covered(
        evaluation(scored(FAILURE, 0.0), match=Match(unmatched=why)), evaluator=evaluator
    )
    counts = why in ("no_conversation_id", "scenario_conflict")
    assert found == (
        *((Coverage("f1", 1, 0, {why: 1}),) if counts else ()),
        Coverage("failure", 1, 1, {}),
    )


def test_a_run_that_no_scenario_can_count_is_not_covered() -> None:
    repeated = replace(FAILURE, aggregation=Aggregation("suite", "pass^k", k=2))
    match = Match(unmatched="no_conversation_id")
    found = covered(
        evaluation(scored(repeated, 0.0), match=match), evaluator=Evaluator((repeated,))
    )
    assert found == (Coverage("failure", 1, 0, {"no_conversation_id": 1}),)


def test_the_criteria_of_a_scenario_count_where_it_lacks_a_conversation() -> None:
    own = Criterion("own", ToolTrajectoryF1(), 0.9)
    match = Match(unmatched="no_conversation_id")
    found = covered(evaluation(match=match), evaluator=Evaluator((F1,), {"refund": (own,)}))
    assert found == (Coverage("own", 1, 0, {"no_conversation_id": 1}),)


@pytest.mark.parametrize(
    ("results", "least", "gaps"),
    [
        ([scored()], 1.0, ()),
        (
            [scored(), unscored("args_not_recorded"), unscored("args_not_recorded")],
            1.0,
            ("Coverage 0.333, expected 1: f1 scored 1 of 3 invocations (2 args_not_recorded).",),
        ),
        ([scored(), unscored("budget"), unscored("budget")], 1 / 3, ()),
        (
            [scored(), unscored("budget"), unscored("budget")],
            0.34,
            ("Coverage 0.333, expected 0.34: f1 scored 1 of 3 invocations (2 budget).",),
        ),
        ([scored(), unscored("budget")], 0.0, ()),
    ],
)
def test_a_gate_with_too_few_scores_does_not_pass(
    results: list[Result], least: float, gaps: tuple[str, ...]
) -> None:
    replayed = [Replayed("traces", tuple(map(evaluation, results)), (), ())]
    gate = judge(replayed, requirements=Requirements(least))
    assert (gate.gaps, gate.reasons, gate.passed) == (gaps, gaps, not gaps)


@given(st.integers(1, 50), st.integers(0, 50))
def test_the_coverage_that_was_reached_is_always_enough(scored: int, missing: int) -> None:
    found = Coverage("f1", scored + missing, scored)
    assert found.meets(found.share)
    assert found.meets(scored / (scored + missing))
    assert found.meets(1.0) == (missing == 0)


def reference(scenario: str, *, required: bool = False) -> Reference:
    return Reference(scenario, (ReferenceTurn(),), required=required)


REFERENCES = [reference("refund", required=True), reference("refund_late"), reference("weather")]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (None, {"refund"}),
        ([], set()),
        (["all"], {"refund", "refund_late", "weather"}),
        (["refund*"], {"refund", "refund_late"}),
        (["weather", "refund_?ate"], {"weather", "refund_late"}),
        (["[!r]*"], {"weather"}),
    ],
)
def test_scenarios_are_required_by_their_mark_or_by_patterns(
    patterns: list[str] | None, expected: set[str]
) -> None:
    assert required_scenarios(REFERENCES, patterns) == expected


def test_a_pattern_that_matches_no_scenario_is_a_mistake() -> None:
    with pytest.raises(ConfigError) as caught:
        required_scenarios(REFERENCES, ["all", "wether", "x*"])
    assert str(caught.value).splitlines() == [
        "--require: found 'wether', expected all, or a pattern that matches a scenario of the"
        " references; did you mean 'weather'?",
        "--require: found 'x*', expected all, or a pattern that matches a scenario of the"
        " references",
    ]


def test_an_id_with_brackets_is_required_as_it_is() -> None:
    references = [reference("refund[eur]"), reference("refunde")]
    assert required_scenarios(references, ["refund[eur]"]) == {"refund[eur]", "refunde"}
    assert required_scenarios(references[:1], ["refund[eur]"]) == {"refund[eur]"}


def test_all_scenarios_of_no_references_are_a_mistake() -> None:
    with pytest.raises(ConfigError) as caught:
        required_scenarios([], ["all"])
    assert str(caught.value) == "--require: found 'all' and no reference, expected references"


def test_only_required_scenarios_without_a_run_fail_the_gate() -> None:
    found = judge(
        [Replayed("traces", (evaluation(scored()),), (), ())],
        None,
        [reference(name) for name in ("a", "refund", "b", "c")],
        Requirements(scenarios=frozenset({"refund", "b", "c"})),
    )
    assert (found.not_run, found.missing) == (("a", "b", "c"), ("b", "c"))
    assert (found.passed, found.reasons) == (False, ("Required scenarios were not run: b, c.",))


@pytest.mark.parametrize(
    ("match", "scenario"),
    [(MATCHED, ""), (Match(unmatched="no_conversation_id"), "refund")],
    ids=["matched by the user's text", "without a conversation"],
)
def test_a_scenario_is_run_even_if_it_is_not_compared(match: Match, scenario: str) -> None:
    ran = evaluation(scored(FAILURE, 0.0), match=match, scenario=scenario)
    gate = judge([Replayed("traces", (ran,), (), ())], None, [reference("refund")])
    assert gate.not_run == ()


def test_invocations_without_a_reference_are_counted_by_reason() -> None:
    reasons: list[tuple[Unmatched, str]] = [
        ("no_scenario_id", ""),
        ("unknown_scenario", "a"),
        ("unknown_scenario", "b"),
        ("unknown_scenario", "b"),
    ]
    ran = [evaluation(match=Match(unmatched=why), scenario=name) for why, name in reasons]
    gate = judge([Replayed("traces", tuple(ran), (), ()), Replayed("more", (ran[0],), (), ())])
    assert list(gate.unmatched.items()) == [
        ("no scenario id", 2),
        ("unknown scenario 'b'", 2),
        ("unknown scenario 'a'", 1),
    ]
