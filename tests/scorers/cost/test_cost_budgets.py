"""Budgets: within the limit or not, and when nobody can say."""

from typing import Any

import pytest

from pathgauge.scorers.authoring.builders import invocation, tool_calls
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.cost.budgets import MaxModelCalls, MaxToolCalls, MaxTurns, TokenEfficiency
from pathgauge.scorers.types import AgentRun, Invocation, ModelCall, Score

DROPPED = {"flags": frozenset({"dropped_spans"})}


def models(count: int, **others: Any) -> Invocation:
    return invocation(
        model_calls=tuple(ModelCall(str(number)) for number in range(count)), **others
    )


def tools(count: int, **others: Any) -> Invocation:
    return invocation(*tool_calls("search " * count), **others)


def tokens(given: int | None, made: int | None, **others: Any) -> Invocation:
    return invocation(input_tokens=given, output_tokens=made, **others)


@pytest.mark.parametrize(
    ("scorer", "actual", "expected"),
    [
        (MaxTurns(), models(10), 1.0),
        (MaxTurns(), models(11), 0.0),
        (MaxTurns(limit=1), models(1), 1.0),
        (MaxTurns(limit=0), models(1), 0.0),
        (MaxTurns(), models(0), "incomplete"),
        (MaxTurns(), models(10, **DROPPED), "incomplete"),
        (MaxTurns(), models(11, **DROPPED), 0.0),
        (MaxTurns(of="user"), invocation(turn=9), 1.0),
        (MaxTurns(of="user"), invocation(turn=10), 0.0),
        (MaxTurns(limit=1, of="user"), invocation(turn=0), 1.0),
        (MaxTurns(of="user"), models(3), "not_applicable"),
        (MaxModelCalls(), models(10), 1.0),
        (MaxModelCalls(), models(11), 0.0),
        (MaxModelCalls(limit=1), models(1), 1.0),
        (MaxModelCalls(), models(0), "incomplete"),
        (MaxModelCalls(), models(10, **DROPPED), "incomplete"),
        (MaxModelCalls(), models(11, **DROPPED), 0.0),
        (MaxToolCalls(), tools(0), 1.0),
        (MaxToolCalls(), tools(10), 1.0),
        (MaxToolCalls(), tools(11), 0.0),
        (MaxToolCalls(limit=0), tools(1), 0.0),
        (MaxToolCalls(), tools(10, **DROPPED), "tools_not_recorded"),
        (MaxToolCalls(), tools(11, **DROPPED), 0.0),
        (TokenEfficiency(), tokens(4_990, 10), 1.0),
        (TokenEfficiency(), tokens(4_990, 11), 0.0),
        (TokenEfficiency(max_tokens=9), tokens(5, 5), 0.0),
        (TokenEfficiency(), tokens(None, None), "tokens_not_recorded"),
        (TokenEfficiency(), tokens(10, None), "tokens_not_recorded"),
        (TokenEfficiency(), tokens(None, 10), "tokens_not_recorded"),
        (TokenEfficiency(), tokens(5_001, None), 0.0),
        (TokenEfficiency(), tokens(5_000, 0, **DROPPED), "incomplete"),
        (TokenEfficiency(), tokens(5_000, 1, **DROPPED), 0.0),
    ],
)
def test_a_limit_that_was_passed_is_certain_and_one_that_was_kept_needs_all_telemetry(
    scorer: Any, actual: Invocation, expected: float | str
) -> None:
    score = scorer.score(actual, None)
    assert (score.value if score.reason is None else score.reason) == expected


@pytest.mark.parametrize(
    ("scorer", "actual", "line", "used", "limit"),
    [
        (MaxTurns(), models(3), "3 of at most 10 turns", 3, 10),
        (MaxTurns(of="user"), invocation(turn=2), "3 of at most 10 turns", 3, 10),
        (MaxModelCalls(), models(3), "3 of at most 10 model calls", 3, 10),
        (MaxToolCalls(limit=2), tools(3), "3 of at most 2 tool calls", 3, 2),
        (TokenEfficiency(), tokens(300, 20), "320 of at most 5000 tokens", 320, 5_000),
    ],
)
def test_the_evidence_is_what_was_used(
    scorer: Any, actual: Invocation, line: str, used: int, limit: int
) -> None:
    assert scorer.score(actual, None) == Score(
        float(used <= limit), None, line, {"used": used, "limit": limit}
    )


def test_a_turn_of_the_model_is_a_message_of_an_agent_that_talks_to_the_user() -> None:
    """A failed call made no message. A sub-agent that was called as a tool only talks to its
    caller, and so does the one that it hands over to; after another handoff, an agent talks to the
    user.
    """
    calls = (
        ModelCall("1", run="main"),
        ModelCall("2", run="main", error="timeout"),
        ModelCall("3", run="called"),
        ModelCall("4", run="specialist"),
        ModelCall("5"),
        ModelCall("6", run="called"),
        ModelCall("7", run="below"),
    )
    runs = (
        AgentRun("called", "search"),
        AgentRun("specialist", "billing", via="handoff"),
        AgentRun("below", "archive", parent_run="called", via="handoff"),
    )
    actual = invocation(model_calls=calls, sub_agents=runs)
    assert MaxTurns(limit=2).score(actual, None).details == {"used": 3, "limit": 2}


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        (MaxTurns, "limit"),
        (MaxModelCalls, "limit"),
        (MaxToolCalls, "limit"),
        (TokenEfficiency, "max_tokens"),
    ],
)
def test_a_limit_is_not_negative(kind: Any, option: str) -> None:
    check_scorer(kind())
    check_scorer(kind(**{option: 0}))
    with pytest.raises(
        ValueError, match=f"{option}: found -1, expected a number that is not negative"
    ):
        kind(**{option: -1})
