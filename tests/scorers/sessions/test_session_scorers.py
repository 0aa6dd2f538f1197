"""The deterministic scorers of whole sessions."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge import (
    ExpectedCall,
    Latency,
    MeanOfTurns,
    Reference,
    ReferenceTurn,
    RepeatedQuestions,
    ScoredCriterion,
    SessionCost,
    SessionResolved,
    SessionTokens,
    SessionToolTrajectory,
    SessionTurn,
    SessionTurns,
    TokenPrice,
    ToolCall,
    expected_calls,
    invocation,
    tool_calls,
)


def asked(*texts: str | None) -> tuple[SessionTurn, ...]:
    return tuple(SessionTurn(invocation(user_input=text)) for text in texts)


def calling(*turns: str, **others: Any) -> tuple[SessionTurn, ...]:
    return tuple(SessionTurn(invocation(*tool_calls(names), **others)) for names in turns)


def reference(*turns: str) -> Reference:
    found = [ReferenceTurn(tool_calls=expected_calls(names)) for names in turns]
    return Reference("talk", tuple(found))


def test_turns_are_counted() -> None:
    assert SessionTurns().score_session(asked("a", "b"), None).value == 2
    assert "the reference has 3" in (
        SessionTurns().score_session(asked("a", "b"), reference("", "", "")).explanation
    )


@pytest.mark.parametrize(
    ("texts", "share", "repeats"),
    [
        (("Where is it?", "And the price?"), 0.0, []),
        (("Where is my order?", "where is MY order", "Thanks"), 1 / 3, [[1, 0]]),
        (("Where is my order?", "My order, where is it?"), 0.5, [[1, 0]]),
        (("a b c d", "a b c d e"), 0.5, [[1, 0]]),
        (("a b c", "a b c d"), 0.0, []),
        (("yes", None, "yes", "yes"), 2 / 3, [[2, 0], [3, 0]]),
        (("?", "!"), 0.0, []),
        (("我的订单什么时候到？", "请取消我的酒店预订", "我的订单什么时候到呢"), 1 / 3, [[2, 0]]),
        (("สินค้าของฉันจะมาถึงเมื่อไหร่", "สินค้าของฉันจะมาถึงเมื่อไหร่ครับ"), 0.5, [[1, 0]]),
        (("कब की कल", "किकोकु बेलो"), 0.0, []),
        (("Où est-ce ?", "Ou\u0300 est-ce ?"), 0.5, [[1, 0]]),
        (("ORDER 7?", "ＯＲＤＥＲ　７？"), 0.5, [[1, 0]]),
    ],
)
def test_a_question_with_most_of_the_words_of_an_earlier_one_repeats_it(
    texts: tuple[str | None, ...], share: float, repeats: list[list[int]]
) -> None:
    score = RepeatedQuestions().score_session(asked(*texts), None)
    assert score.value == pytest.approx(share)
    assert score.details["repeats"] == repeats


def test_without_any_text_or_with_too_many_nothing_is_said_of_questions() -> None:
    assert RepeatedQuestions().score_session(asked(None), None).reason == "texts_not_recorded"
    many = asked(*map(str, range(1_001)))
    assert RepeatedQuestions().score_session(many, None).reason == "too_long"


@pytest.mark.parametrize(
    ("actual", "expected", "f1"),
    [
        (("a", "b"), ("a", "b"), 1.0),
        (("a b", ""), ("a", "b"), 1.0),
        (("", "a b"), ("a", "b"), 1.0),
        (("b", "a"), ("a", "b"), 0.5),
        (("a",), ("a", "b c"), 0.5),
        (("a", "b", "c c"), ("a", "b"), 2 / 3),
    ],
)
def test_the_calls_of_all_turns_are_compared_as_one_trajectory(
    actual: tuple[str, ...], expected: tuple[str, ...], f1: float
) -> None:
    score = SessionToolTrajectory().score_session(calling(*actual), reference(*expected))
    assert score.value == pytest.approx(f1)


def test_groups_of_different_turns_are_not_one_group() -> None:
    turns = tuple(
        ReferenceTurn(tool_calls=(ExpectedCall("a", group=1), ExpectedCall("b", group=1)))
        for _ in range(2)
    )
    talk = Reference("talk", turns)
    assert SessionToolTrajectory().score_session(calling("b a", "a b"), talk).value == 1
    assert SessionToolTrajectory().score_session(calling("a a", "b b"), talk).value == 0.75


def test_the_best_combination_of_alternatives_counts() -> None:
    either = ReferenceTurn(tool_calls=expected_calls("a"), alternatives=(expected_calls("b"),))
    talk = Reference("talk", (either, either))
    assert SessionToolTrajectory().score_session(calling("b", "a"), talk).value == 1
    many = Reference("talk", (either,) * 7)
    assert SessionToolTrajectory().score_session(calling("a"), many).reason == "too_long"


def test_tools_that_are_not_known_give_no_score() -> None:
    lost = calling("a", flags=frozenset({"lost_tool_calls"}))
    assert SessionToolTrajectory().score_session(lost, reference("a")).reason == "lost_telemetry"
    vague = Reference("talk", (ReferenceTurn(), ReferenceTurn(tool_calls=())))
    assert SessionToolTrajectory().score_session(lost, vague).reason == "no_reference"


def test_the_mean_of_turns_leaves_out_those_without_a_score() -> None:
    mean = MeanOfTurns(ScoredCriterion("latency", Latency()))
    turns = tuple(SessionTurn(invocation(), {"latency": value}) for value in (1.0, None, 4.0))
    assert mean.score_session(turns, None).value == 2.5
    assert (mean.low, mean.high, mean.higher_is_better) == (0, Latency.high, False)
    assert mean.score_session(turns[1:2], None).reason == "undefined"


def test_the_mean_of_turns_is_finite_for_all_finite_scores() -> None:
    mean = MeanOfTurns(ScoredCriterion("latency", Latency()))
    turns = tuple(SessionTurn(invocation(), {"latency": value}) for value in (1e308, 1e308, 1e308))
    assert mean.score_session(turns, None).value == pytest.approx(1e308)


@pytest.mark.parametrize(
    ("signals", "options", "value", "reason"),
    [
        ((None, "resolved"), {}, 1.0, None),
        (("resolved", "escalated"), {}, 0.0, None),
        (("escalated", None), {}, 0.0, None),
        (("Done",), {"resolved": ("done",)}, 1.0, None),
        ((None,), {}, None, "not_applicable"),
        ((None,), {"without_signal": 0.0}, 0.0, None),
        ((None,), {"tool_name": "close"}, 1.0, None),
        (("escalated",), {"tool_name": "close"}, 0.0, None),
        ((None,), {"tool_name": "other"}, None, "not_applicable"),
        (("ended",), {}, None, "not_applicable"),
        (("ended",), {"without_signal": 0.0}, 0.0, None),
        (("ended",), {"tool_name": "close"}, 1.0, None),
        (("resolved", "ended"), {}, 1.0, None),
        (("ended",), {"resolved": ("Ended",)}, 1.0, None),
    ],
)
def test_the_last_signal_says_whether_a_session_was_resolved(
    signals: tuple[str | None, ...], options: Any, value: float | None, reason: str | None
) -> None:
    turns = tuple(SessionTurn(invocation(ToolCall("close"), session_end=one)) for one in signals)
    score = SessionResolved(**options).score_session(turns, None)
    assert (score.value, score.reason) == (value, reason)


def test_a_tool_that_may_have_been_called_resolves_nothing() -> None:
    lost = (SessionTurn(invocation(flags=frozenset({"lost_tool_calls"}))),)
    assert SessionResolved(tool_name="close").score_session(lost, None).reason == "lost_telemetry"


def test_tokens_and_money_are_added_up_unless_a_turn_does_not_know_its_own() -> None:
    known = SessionTurn(invocation(model="m", input_tokens=1_000_000, output_tokens=500_000))
    unknown = SessionTurn(invocation())
    prices = {"m": TokenPrice(2.0, 4.0)}
    assert SessionTokens().score_session((known, known), None).value == 3_000_000
    assert SessionTokens().score_session((known, unknown), None).reason == "tokens_not_recorded"
    assert SessionCost(prices).score_session((known, known), None).value == 8.0
    assert SessionCost({}).score_session((known,), None).reason == "no_price"
