"""What `pathgauge lint` finds in references, and which criteria notice spoiled runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pathgauge.collector.config.criteria import Location, build
from pathgauge.collector.core.curation.grouping import Observed
from pathgauge.collector.core.documents import Document, yaml_source
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.references import ReferenceSet, native
from pathgauge.collector.offline.linting.mutations import KINDS, mutants
from pathgauge.collector.offline.linting.report import Report, lint
from pathgauge.scorers.types import Invocation, ToolCall

CRITERIA: Mapping[str, Any] = {
    "tool_trajectory_avg_score": 1.0,
    "response_match_score": 0.5,
}
CALLS = (("lookup", {"id": "A-7", "full": True}), ("refund", {"amount": 12.5}))
ANSWER = "I have refunded 12 euros to your card."
REFERENCE = """
scenario: refund
expected_tools:
  - {name: lookup, args: {id: A-7, full: true}}
  - {name: refund, args: {amount: 12.5}}
expected_response: I have refunded 12 euros to your card.
"""


def run(
    number: int = 0,
    calls: Sequence[tuple[str, Mapping[str, Any]]] = CALLS,
    answer: str = ANSWER,
    scenario: str = "refund",
) -> Observed:
    return Observed(
        Invocation(
            f"{number:032x}",
            f"{number:016x}",
            "genai",
            scenario_id=scenario,
            tool_calls=tuple(ToolCall(name, args) for name, args in calls),
            final_response=answer,
        )
    )


def runs(count: int, *args: Any) -> list[Observed]:
    return [run(number, *args) for number in range(count)]


def linted(
    reference: str, observed: Sequence[Observed], criteria: Mapping[str, Any] = CRITERIA
) -> Report:
    [document] = yaml_source.read(reference, "references.yaml", None)
    references = ReferenceSet(one for _, one in native.load(document).references)
    built = build(criteria, Location(Document("", None), ("criteria",)))
    return lint(observed, references, Evaluator(built), window=10)


def found(report: Report) -> dict[str, str]:
    return {finding.check: finding.text for finding in report.findings}


def test_a_reference_that_fits_the_traffic_has_no_findings() -> None:
    report = linted(REFERENCE, runs(30))
    assert found(report) == {}
    assert list(report.violations(None)) == []


@pytest.mark.parametrize(
    ("old", "new", "check", "text"),
    [
        ("refund\n", "refunds\n", "never_matches", "matches 0 of the last 30 runs"),
        (
            "A-7",
            "A-8",
            "never_equal",
            "lookup.id is never equal: expected 'A-8', found for instance 'A-7' in 30 calls",
        ),
        ("full", "whole", "never_given", "lookup.whole is given in 0 of 30 calls"),
        (
            ", full: true",
            "",
            "always_given",
            "lookup.full is not expected, but given in all 30 calls",
        ),
        ("name: refund", "name: pay", "never_called", "pay is expected, but made in 0 of 30 runs"),
        (
            "12.5}}",
            "12.5}, optional: true}",
            "not_optional",
            "refund is optional, but made in 30 of 30 runs",
        ),
        ("12.5}", "{$one_of: [12.5, 13]}}", "dead_value", "refund.amount is 13 in 0 of 30 calls"),
        (
            "expected_response",
            "alternatives: [[escalate]]\nexpected_response",
            "dead_alternative",
            "alternative 1 is the best for 0 of 30 runs: it is dead",
        ),
        (
            "expected_response",
            "forbidden_tools: [{name: lookup, args: {id: A-7}}]\nexpected_response",
            "always_forbidden",
            "the forbidden tool lookup is used in 30 of 30 runs",
        ),
        (
            "expected_response",
            "forbidden_tools: [refund]\nexpected_response",
            "contradiction",
            "the tool refund is expected and forbidden",
        ),
        (
            "expected_response",
            "response_contains: [sorry]\nexpected_response",
            "phrase_never_found",
            "the phrase 'sorry' is in 0 of 30 answers",
        ),
        (
            "I have refunded 12 euros to your card.",
            "No.",
            "always_failed",
            "response_match_score is missed by all 30 runs",
        ),
        (
            "expected_response: ",
            "input: ",
            "never_evaluated",
            "response_match_score has a value for 0 of 30 runs: 30 no_reference",
        ),
    ],
)
def test_a_reference_that_says_nothing_or_something_wrong_is_found(
    old: str, new: str, check: str, text: str
) -> None:
    report = linted(REFERENCE.replace(old, new, 1), runs(30))
    assert found(report)[check] == text


def test_a_problem_is_a_violation_and_a_note_is_none() -> None:
    assert list(linted(REFERENCE.replace("A-7", "A-8"), runs(30)).violations(None)) == [
        "problems found: 2"
    ]
    noted = linted(REFERENCE.replace("12.5}}", "12.5}, optional: true}"), runs(30))
    assert [finding.level for finding in noted.findings] == ["note"]
    assert list(noted.violations(None)) == []


def test_a_threshold_within_the_noise_of_its_window_is_noted() -> None:
    halves = [*runs(15), *(run(20 + n, CALLS, "I have refunded your card.") for n in range(15))]
    noisy = linted(REFERENCE, halves, {"response_match_score": 0.85})
    assert found(noisy) == {
        "within_noise": "the threshold 0.85 of response_match_score is within the noise: means of"
        " 10 runs are 0.885 ± 0.073"
    }
    assert found(linted(REFERENCE, halves, {"response_match_score": 0.5})) == {}


def test_a_threshold_of_a_share_is_not_compared_with_the_mean_of_scores() -> None:
    halves = [*runs(15), *(run(20 + n, CALLS, "I have refunded your card.") for n in range(15))]
    share = {"over": "scenario", "aggregate": "share", "each": 0.8, "threshold": 0.9}
    assert found(linted(REFERENCE, halves, {"response_match_score": share})) == {}
    mean = {"over": "scenario", "threshold": 0.9}
    assert "within_noise" in found(linted(REFERENCE, halves, {"response_match_score": mean}))


def test_few_runs_say_nothing_about_never() -> None:
    assert found(linted(REFERENCE.replace("A-7", "A-8"), runs(4))) == {}


def rows(report: Report) -> dict[str, tuple[int, int, int]]:
    return {row.kind: (row.tried, row.allowed, row.noticed) for row in report.mutations.rows}


def test_the_table_shows_what_criteria_notice_and_what_none_does() -> None:
    report = linted(REFERENCE, runs(30))
    assert rows(report) == {
        "drop a call": (2, 0, 2),
        "repeat a call": (2, 0, 2),
        "swap two calls": (1, 0, 1),
        "call another tool": (2, 0, 2),
        "change an argument": (3, 0, 3),
        "drop an argument": (3, 0, 3),
        "add an argument": (2, 0, 2),
        "empty the answer": (1, 0, 1),
        "refuse in the answer": (1, 0, 1),
        "halve the answer": (1, 0, 0),
        "change a number of the answer": (1, 0, 0),
    }
    assert report.mutations.share == pytest.approx(17 / 19)
    [last] = [row for row in report.mutations.rows if row.kind == KINDS[-1]]
    assert last.unnoticed == ["refund: the answer"]
    assert list(report.violations(0.8)) == []
    assert list(report.violations(0.95)) == [
        "criteria notice 89.5% of the mutations, expected 95.0%"
    ]


def test_what_the_reference_allows_need_not_be_noticed() -> None:
    free = """
scenario: refund
expected_tools:
  - any_order:
      - {name: lookup, args: {id: {$any: true}, full: true}, optional: true}
      - {name: refund, args: {amount: 12.5}}
"""
    report = linted(free, runs(5), {"tool_trajectory_avg_score": 1.0})
    assert rows(report)["drop a call"] == (2, 1, 1)
    assert rows(report)["swap two calls"] == (1, 1, 0)
    assert rows(report)["change an argument"] == (3, 1, 2)


def test_names_alone_do_not_notice_arguments() -> None:
    report = linted(REFERENCE, runs(5), {"tool_trajectory_f1": 1.0})
    assert rows(report)["change an argument"] == (3, 0, 0)
    assert rows(report)["drop a call"] == (2, 0, 2)


def test_bad_runs_are_not_spoiled() -> None:
    report = linted(REFERENCE, runs(5, CALLS[:1]))
    assert report.mutations.runs == 0
    assert list(report.violations(0.5)) == [
        "problems found: 2",
        "no good run to spoil, so nothing says what criteria notice",
    ]


def test_every_mutant_differs_from_its_run() -> None:
    original = run().invocation
    spoiled = list(mutants(original))
    assert {mutant.kind for mutant in spoiled} == set(KINDS)
    assert [mutant for mutant in spoiled if mutant.invocation == original] == []


def test_few_runs_say_nothing_about_what_is_allowed_or_about_noise() -> None:
    optional = REFERENCE.replace("12.5}}", "12.5}, optional: true}")
    assert found(linted(optional, runs(19))) == {}
    mixed = [*runs(4), *(run(20 + n, CALLS, "I have refunded your card.") for n in range(4))]
    assert found(linted(REFERENCE, mixed, {"response_match_score": 0.85})) == {}


def test_equal_calls_are_not_swapped() -> None:
    spoiled = mutants(run(0, (CALLS[0], CALLS[0])).invocation)
    assert "swap two calls" not in {mutant.kind for mutant in spoiled}


def test_calls_of_one_tool_are_compared_with_the_expected_ones_that_they_match() -> None:
    reference = """
scenario: refund
expected_tools:
  - any_order:
      - {name: weather, args: {city: Paris}}
      - {name: weather, args: {city: Rome, unit: C}}
"""
    made = [("weather", {"city": "Rome", "unit": "C"}), ("weather", {"city": "Paris"})]
    assert found(linted(reference, runs(30, made), {"tool_trajectory_avg_score": 1.0})) == {}


def test_a_call_with_other_arguments_is_compared_with_what_no_other_call_matches() -> None:
    reference = """
scenario: refund
expected_tools:
  - {name: weather, args: {city: Paris}}
  - {name: weather, args: {city: Rome}}
"""
    made = [("weather", {"city": "Rome"}), ("weather", {"city": "Oslo"})]
    assert found(linted(reference, runs(30, made), {"tool_calls": None})) == {
        "never_equal": "weather.city is never equal: expected 'Paris', found for instance 'Oslo' in"
        " 30 calls"
    }


def test_runs_that_were_kept_before_there_was_a_reference_have_the_turn_that_they_state() -> None:
    reference = """
scenario: refund
turns:
  - expected_tools: [lookup]
  - expected_tools: [refund]
"""
    observed = [
        Observed(replace(one.invocation, turn=index), turn=None)
        for number in range(10)
        for index, tool in enumerate(("lookup", "refund"))
        for one in [run(2 * number + index, [(tool, {})])]
    ]
    assert found(linted(reference, observed, {"tool_trajectory_avg_score": 1.0})) == {}


def test_calls_and_arguments_that_were_not_recorded_are_no_problem_of_the_reference() -> None:
    made = [run(n).invocation for n in range(30)]
    without_arguments = [
        Observed(replace(one, tool_calls=tuple(replace(c, arguments=None) for c in one.tool_calls)))
        for one in made
    ]
    assert found(linted(REFERENCE, without_arguments, {"response_match_score": 0.5})) == {}
    without_calls = [
        Observed(replace(one, tool_calls=(), flags=frozenset({"no_tool_spans"}))) for one in made
    ]
    assert found(linted(REFERENCE, without_calls, {"response_match_score": 0.5})) == {}


def test_arguments_of_few_recorded_calls_say_nothing() -> None:
    wrong = [("lookup", {"id": "A-8", "full": True}), ("refund", {"amount": 12.5})]
    unrecorded = run(1).invocation
    unrecorded = replace(
        unrecorded, tool_calls=tuple(replace(c, arguments=None) for c in unrecorded.tool_calls)
    )
    observed = [*runs(4, wrong), *[Observed(unrecorded)] * 26]
    assert found(linted(REFERENCE, observed, {"response_match_score": 0.5})) == {}
