"""Tokens and calls: what an invocation cost, and when that is not known."""

from typing import Any

import pytest

from pathgauge.scorers.authoring.builders import invocation, tool_calls
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.cost.usage import (
    InputTokens,
    ModelCalls,
    OutputTokens,
    ToolCalls,
    TotalTokens,
)
from pathgauge.scorers.types import ModelCall, Score

MODELS = (ModelCall("1"), ModelCall("2"))


@pytest.mark.parametrize(
    ("scorer", "tokens", "score"),
    [
        (
            TotalTokens(),
            (300, 20),
            Score(320.0, None, "300 input and 20 output tokens", {"input": 300, "output": 20}),
        ),
        (
            TotalTokens(),
            (0, 0),
            Score(0.0, None, "0 input and 0 output tokens", {"input": 0, "output": 0}),
        ),
        (TotalTokens(), (300, None), Score.not_evaluated("tokens_not_recorded")),
        (TotalTokens(), (None, 20), Score.not_evaluated("tokens_not_recorded")),
        (
            InputTokens(),
            (300, None),
            Score(300.0, None, "300 input tokens", {"input": 300, "output": None}),
        ),
        (InputTokens(), (None, 20), Score.not_evaluated("tokens_not_recorded")),
        (
            OutputTokens(),
            (None, 20),
            Score(20.0, None, "20 output tokens", {"input": None, "output": 20}),
        ),
        (OutputTokens(), (300, None), Score.not_evaluated("tokens_not_recorded")),
    ],
)
def test_tokens_are_counted_where_they_are_recorded(
    scorer: Any, tokens: tuple[int | None, int | None], score: Score
) -> None:
    assert scorer.score(invocation(input_tokens=tokens[0], output_tokens=tokens[1]), None) == score


@pytest.mark.parametrize(
    ("scorer", "actual", "value", "line"),
    [
        (ModelCalls(), invocation(model_calls=MODELS), 2.0, "2 model calls"),
        (ModelCalls(), invocation(model_calls=MODELS[:1]), 1.0, "1 model call"),
        (ToolCalls(), invocation(*tool_calls("search search")), 2.0, "2 tool calls"),
        (ToolCalls(), invocation(), 0.0, "0 tool calls"),
    ],
)
def test_calls_are_counted(scorer: Any, actual: Any, value: float, line: str) -> None:
    assert scorer.score(actual, None) == Score(value, None, line)


def test_an_agent_without_model_calls_is_one_whose_model_calls_are_not_traced() -> None:
    assert ModelCalls().score(invocation(*tool_calls("search")), None) == Score.not_evaluated(
        "incomplete", "no model calls were recorded"
    )


@pytest.mark.parametrize("flag", ["dropped_spans", "llm_detail_unreliable"])
@pytest.mark.parametrize("scorer", [TotalTokens(), InputTokens(), OutputTokens(), ModelCalls()])
def test_a_count_is_not_known_when_model_calls_may_be_missing(scorer: Any, flag: str) -> None:
    actual = invocation(
        model_calls=MODELS, input_tokens=1, output_tokens=1, flags=frozenset({flag})
    )
    assert scorer.score(actual, None) == Score.not_evaluated(
        "incomplete", f"model calls may be missing from the telemetry: {flag}"
    )


def test_the_number_of_tool_calls_is_not_known_when_some_may_be_missing() -> None:
    assert (
        ToolCalls()
        .score(invocation(*tool_calls("search"), flags=frozenset({"no_tool_spans"})), None)
        .reason
        == "tools_not_recorded"
    )


@pytest.mark.parametrize("kind", [TotalTokens, InputTokens, OutputTokens, ModelCalls, ToolCalls])
def test_less_is_better_without_limit(kind: Any) -> None:
    check_scorer(kind())
    assert (kind.higher_is_better, kind.high) == (False, float("inf"))
