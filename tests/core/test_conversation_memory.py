"""Memory of open conversations: beyond the limit, the quietest conversation is finished early."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathgauge import ToolTrajectoryF1
from pathgauge.collector.core.evaluations.conversations import (
    ConversationResult,
    Conversations,
    Ended,
)
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.scorers.types import (
    ExpectedCall,
    Invocation,
    Json,
    Reference,
    ReferenceTurn,
    ToolCall,
)
from support.dialects import INSTALLED

LOOKUP = ReferenceTurn(tool_calls=(ExpectedCall("lookup"),))
DIALOGUE = Reference("dialogue", (LOOKUP, LOOKUP))
BUDGET = 1_000_000
TEXT = "x" * 400_000


def turn(conversation: str, arguments: Json = TEXT, trace: str = "") -> Invocation:
    """A turn with the expected tool call. By default, its trace id is the conversation id."""
    call = ToolCall("lookup", {"value": arguments})
    trace = trace or conversation
    return Invocation(
        trace,
        "s",
        "test",
        conversation_id=conversation,
        scenario_id="dialogue",
        tool_calls=(call,),
        start_ns=1,
    )


def opened(*invocations: Invocation, max_bytes: int = BUDGET) -> Conversations:
    """One turn per second, the first one at 0."""
    conversations = Conversations(idle=100, max_bytes=max_bytes)
    for at, invocation in enumerate(invocations):
        conversations.place(invocation, DIALOGUE, at)
    return conversations


def names(ended: list[Ended]) -> list[str]:
    return [one.key[1] for one in ended]


def test_beyond_the_byte_limit_the_quietest_conversation_is_finished() -> None:
    conversations = opened(turn("a"), turn("b"), turn("a", "", trace="again"))
    assert (conversations.deadline(), conversations.expire(3)) == (101, [])
    conversations.place(turn("c"), DIALOGUE, 4)
    assert conversations.deadline() == 1
    assert names(conversations.expire(5)) == ["b"]
    assert (conversations.deadline(), names(conversations.drain()), conversations.size) == (
        102,
        ["a", "c"],
        0,
    )


def test_beyond_the_conversation_limit_the_quietest_one_is_finished() -> None:
    conversations = Conversations(idle=100, max_open=1)
    for at, conversation in enumerate("ab"):
        conversations.place(turn(conversation), DIALOGUE, at)
    assert (conversations.deadline(), names(conversations.expire(1)), conversations.deadline()) == (
        0,
        ["a"],
        101,
    )


def test_a_turn_that_is_larger_than_the_budget_leaves_nothing_behind() -> None:
    conversations = opened(turn("a"), max_bytes=1000)
    assert (names(conversations.expire(0)), conversations.size, conversations.deadline()) == (
        ["a"],
        0,
        None,
    )


@pytest.mark.parametrize(
    "content",
    [
        Invocation("t", "s", "test", user_input=TEXT),
        Invocation("t", "s", "test", final_response=TEXT),
        Invocation("t", "s", "test", tool_schemas={"lookup": {"description": TEXT}}),
        Invocation("t", "s", "test", tool_calls=(ToolCall("lookup", TEXT),)),
        Invocation("t", "s", "test", tool_calls=(ToolCall("lookup", {TEXT: 1}),)),
        Invocation("t", "s", "test", tool_calls=(ToolCall("lookup", {"rows": [[TEXT]]}),)),
        Invocation(
            "t", "s", "test", tool_calls=(ToolCall("lookup", result={"rows": list(range(50_000))}),)
        ),
        Invocation("t", "s", "test", tool_calls=(ToolCall("lookup", error=TEXT),)),
        Invocation("t", "s", "test", user_input="\0" * (len(TEXT) // 6)),  # the store escapes it
    ],
)
def test_all_content_of_a_turn_counts(content: Invocation) -> None:
    assert opened(replace(content, conversation_id="c", scenario_id="dialogue")).size >= len(TEXT)


def test_a_repeated_turn_counts_once() -> None:
    conversations = opened(turn("a"))
    size = conversations.size
    conversations.place(turn("a"), DIALOGUE, 1)
    assert conversations.size == size


def test_forgotten_turns_do_not_count() -> None:
    conversations = opened(turn("a"), turn("b"), turn("c"))
    conversations.withdraw(("", "a", "s"))
    conversations.withdraw(("", "nobody", "s"))
    conversations.discard({("", "b")})
    assert conversations.size == opened(turn("c")).size


def test_dropped_turns_take_no_memory() -> None:
    kept = [turn("a", trace=f"t{number}") for number in range(8)]
    assert opened(*kept, turn("a", trace="beyond")).size == opened(*kept).size


def test_restored_turns_count_and_keep_their_scores() -> None:
    evaluator = Evaluator((Criterion("f1", ToolTrajectoryF1(), None),))
    core = Pipeline(
        INSTALLED,
        evaluator,
        ReferenceSet([DIALOGUE]),
        InternalTelemetry(),
        conversation_idle=100,
        max_conversation_bytes=BUDGET,
    )
    for conversation in "abcd":
        core.restore_turn(StoredTurn(turn(conversation), 7.0, number=0))
    assert core.usage().conversation_bytes > 4 * len(TEXT)
    assert core.deadline() == 7
    assert [_score(outcome) for outcome in core.expire(7)] == [
        ("a", [("f1", 0.5)]),
        ("b", [("f1", 0.5)]),
    ]
    assert 2 * len(TEXT) < core.usage().conversation_bytes < BUDGET
    assert core.deadline() == 107


def _score(outcome: PipelineEvent) -> tuple[str, list[tuple[str, float | None]]]:
    assert isinstance(outcome, ConversationResult)
    return outcome.conversation_id, [
        (score.criterion.name, score.value) for score in outcome.scores
    ]
