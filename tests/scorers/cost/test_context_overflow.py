"""Context overflow: errors of model calls and agents that mention it, and the token limit."""

from typing import Any

import pytest

from pathgauge import Score
from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.cost.context_overflow import ContextOverflow
from pathgauge.scorers.types import AgentRun, Invocation, ModelCall


def calling(*errors: str | None, **others: Any) -> Invocation:
    """An invocation with a model call for each of these errors."""
    return invocation(
        model_calls=tuple(
            ModelCall(str(i), "agent", model="m", error=error) for i, error in enumerate(errors)
        ),
        **others,
    )


@pytest.mark.parametrize(
    "error",
    [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in"
            " 8545 tokens."
        ),
        "Error code: 400 - {'error': {'code': 'context_length_exceeded'}}",
        "Your input exceeds the context window of this model",
        "prompt is too long: 213462 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "Input is too long for requested model.",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Please reduce the length of the messages or completion.",
        "the request exceeds the available context size, try increasing it",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
        "Input tokens exceed the configured limit of 272000 tokens.",
        "Your request exceeded model token limit: 131072",
        "ContextWindowExceededError",
        "litellm.ContextWindowExceededError: litellm.BadRequestError",
        "ContextOverflowError",
    ],
)
def test_an_error_that_speaks_of_the_context_is_an_overflow(error: str) -> None:
    score = ContextOverflow().score(calling(None, error), None)
    details = {"overflows": [{"model_call": 1, "model": "m", "input_tokens": None, "error": error}]}
    assert score == Score(1.0, None, f"too long: {error}", details)


@pytest.mark.parametrize(
    "error",
    [
        (
            "Rate limit reached for gpt-5 in organization o on tokens per min (TPM): Limit 30000,"
            " Used 29000."
        ),
        "Requests have exceeded token rate limit of your current OpenAI S0 pricing tier.",
        "Too many tokens, please wait before trying again.",
        "Request took too long",
        "TimeoutError",
        "error",
        "",
    ],
)
def test_other_errors_are_not(error: str) -> None:
    assert ContextOverflow().score(calling(error, None), None) == Score(
        0.0, None, "none of 2 model calls was too long", {"overflows": []}
    )  # fmt: skip


def test_an_agent_that_ended_with_such_an_error_is_enough() -> None:
    failed = invocation(error=True, error_type="ContextWindowExceededError")
    assert ContextOverflow().score(failed, None).value == 1.0
    for run in (
        AgentRun("2", "writer", error="prompt is too long"),
        AgentRun("2", "writer", error_type="ContextOverflowError"),
    ):
        score = ContextOverflow().score(calling(None, sub_agents=(run,)), None)
        assert (score.value, score.details["overflows"][0]["agent"]) == (1.0, "writer")


@pytest.mark.parametrize(("tokens", "value"), [(99, 0.0), (100, 0.0), (101, 1.0)])
def test_more_input_tokens_than_the_limit_are_an_overflow(tokens: int, value: float) -> None:
    actual = invocation(
        model_calls=(ModelCall("a", input_tokens=5), ModelCall("b", input_tokens=tokens))
    )
    assert ContextOverflow(limit=100).score(actual, None).value == value
    assert ContextOverflow().score(actual, None).value == 0.0


def test_the_explanation_names_the_tokens() -> None:
    score = ContextOverflow(limit=100).score(
        invocation(model_calls=(ModelCall("a", input_tokens=5_000),)), None
    )
    assert score.explanation == "too long: 5000 input tokens"


@pytest.mark.parametrize(
    ("actual", "limit", "reason"),
    [
        (invocation(), None, "incomplete"),
        (invocation(error=True, error_type="TimeoutError"), None, "incomplete"),
        (calling(None, flags=frozenset({"dropped_spans"})), None, "incomplete"),
        (calling(None), 100, "tokens_not_recorded"),
        (calling("timeout"), 100, None),
        (calling("prompt is too long", flags=frozenset({"dropped_spans"})), None, None),
        (calling(None, "prompt is too long"), 100, None),
    ],
)
def test_what_cannot_be_known_is_no_value_unless_an_overflow_was_seen(
    actual: Invocation, limit: int | None, reason: str | None
) -> None:
    assert ContextOverflow(limit=limit).score(actual, None).reason == reason


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_without_meaning_is_refused(limit: int) -> None:
    with pytest.raises(
        ValueError, match=f"^limit: found {limit}, expected a number of tokens from 1$"
    ):
        ContextOverflow(limit=limit)


@pytest.mark.parametrize("scorer", [ContextOverflow(), ContextOverflow(limit=100)])
def test_it_keeps_the_contract_of_scorers(scorer: ContextOverflow) -> None:
    check_scorer(
        scorer,
        [
            (calling("prompt is too long\nby far", None), None),
            (calling("token count" * 50_000), None),
        ],
    )
