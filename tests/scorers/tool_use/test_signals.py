"""Signals given through tools: completion and escalation."""

from typing import Any

import pytest

from pathgauge.scorers.authoring.builders import invocation, tool_calls
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.tool_use.signals import Escalation, EscalationRate, SignalTaskComplete
from pathgauge.scorers.types import ReferenceTurn, Score

UNKNOWN = frozenset({"no_tool_spans"})


def value_or_reason(score: Score) -> float | str | None:
    return score.reason or score.value


# "Evaluator Catalog & Scoring": eval_signal_task_complete


@pytest.mark.parametrize(
    ("calls", "flags", "expected"),
    [
        ("lookup_order signal_task_complete", frozenset(), 1.0),
        ("signal_task_complete signal_task_complete", frozenset(), 1.0),
        ("lookup_order", frozenset(), 0.0),
        ("", frozenset(), 0.0),
        ("signal_task_complete", UNKNOWN, 1.0),
        ("lookup_order", UNKNOWN, "tools_not_recorded"),
    ],
)
def test_completion_is_signalled_by_calling_the_tool(
    calls: str, flags: Any, expected: float | str
) -> None:
    assert (
        value_or_reason(
            SignalTaskComplete().score(invocation(*tool_calls(calls), flags=flags), None)
        )
        == expected
    )


def test_the_signal_may_have_another_name() -> None:
    score = SignalTaskComplete(" finish ").score(
        invocation(*tool_calls("search finish finish")), None
    )
    assert score == Score(1.0, None, "finish was called 2 times", {"calls": [1, 2]})


# "Evaluator Catalog & Scoring": eval_escalation; a scenario without `should_escalate` is not judged


@pytest.mark.parametrize(
    ("calls", "wanted", "flags", "expected"),
    [
        ("escalate_to_human", True, frozenset(), 1.0),
        ("lookup_order", True, frozenset(), 0.0),
        ("escalate_to_human", False, frozenset(), 0.0),
        ("lookup_order", False, frozenset(), 1.0),
        ("lookup_order", None, frozenset(), "no_reference"),
        ("escalate_to_human", None, frozenset(), "no_reference"),
        ("escalate_to_human", True, UNKNOWN, 1.0),
        ("escalate_to_human", False, UNKNOWN, 0.0),
        ("", True, UNKNOWN, "tools_not_recorded"),
        ("", False, UNKNOWN, "tools_not_recorded"),
    ],
)
def test_a_turn_is_escalated_exactly_when_it_should_be(
    calls: str, wanted: bool | None, flags: Any, expected: float | str
) -> None:
    actual = invocation(*tool_calls(calls), flags=flags)
    assert value_or_reason(Escalation().score(actual, ReferenceTurn(escalate=wanted))) == expected
    assert value_or_reason(Escalation(expected=wanted).score(actual, None)) == expected
    assert value_or_reason(Escalation(expected=wanted).score(actual, ReferenceTurn())) == expected


def test_the_reference_goes_before_the_option() -> None:
    actual, turn = invocation(*tool_calls("page_operator")), ReferenceTurn(escalate=False)
    score = Escalation("page_operator", expected=True).score(actual, turn)
    assert score == Score(
        0.0, None, "page_operator was called, expected none", {"calls": [0], "expected": False}
    )
    assert (
        Escalation("page_operator", expected=True).score(actual, None).explanation
        == "page_operator was called, expected a call"
    )


@pytest.mark.parametrize(
    ("calls", "flags", "expected"),
    [
        ("escalate_to_human", frozenset(), 1.0),
        ("lookup_order", frozenset(), 0.0),
        ("escalate_to_human", UNKNOWN, 1.0),
        ("lookup_order", UNKNOWN, "tools_not_recorded"),
    ],
)
def test_the_escalation_rate_is_the_mean_of_ones_and_zeros(
    calls: str, flags: Any, expected: float | str
) -> None:
    assert (
        value_or_reason(
            EscalationRate().score(
                invocation(*tool_calls(calls), flags=flags), ReferenceTurn(escalate=True)
            )
        )
        == expected
    )
    assert not EscalationRate.higher_is_better


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        (SignalTaskComplete, "tool_name"),
        (Escalation, "escalation_tool"),
        (EscalationRate, "escalation_tool"),
    ],
)
def test_the_tool_has_a_name(kind: Any, option: str) -> None:
    check_scorer(kind())
    check_scorer(kind(**{option: "search"}))
    with pytest.raises(ValueError, match=f"{option}: found ' ', expected the name of a tool"):
        kind(**{option: " "})
