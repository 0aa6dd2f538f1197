"""An invocation seen as what its main agent did itself, and as what each sub-agent did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scorers.hierarchy import own_view, subtree_view
from scorers.types import AgentRun, Invocation, ModelCall, ToolCall, total_tokens

ROUTED = ToolCall("ask_billing", {"about": "INV-9"}, agent="main", run="1", kind="agent")
BILLED = ToolCall("get_invoice", {"id": "INV-9"}, agent="billing", run="2")
CHECKED = ToolCall("check_tax", {}, agent="tax", run="3")
MODELS = (
    ModelCall("a", "main", "1", "big", 10, 1),
    ModelCall("b", "billing", "2", "small", 20, 2),
    ModelCall("c", "tax", "3", "tiny", 30, 3),
    ModelCall("d", "main", "1", "big", 40, 4),
)
BILLING = AgentRun("2", "billing", "main", "1", "agent", "INV-9?", "120 EUR", start_ns=2, end_ns=5)
TAX = AgentRun("3", "tax", "billing", "2", "agent", "how much tax?", None, "boom", "ValueError", 3, 4)
WHOLE = Invocation(
    "t",
    "1",
    "genai",
    agent="main",
    user_input="how much?",
    tool_calls=(ROUTED, BILLED, CHECKED),
    sub_agents=(BILLING, TAX),
    model_calls=MODELS,
    final_response="120 euros",
    model="big",
    input_tokens=100,
    output_tokens=10,
    start_ns=1,
    end_ns=6,
)


def test_the_main_agent_did_what_no_sub_agent_did() -> None:
    assert own_view(WHOLE) == replace(
        WHOLE, tool_calls=(ROUTED,), model_calls=(MODELS[0], MODELS[3]), sub_agents=(), input_tokens=50, output_tokens=5
    )


def test_an_agent_without_sub_agents_is_its_own_view() -> None:
    alone = replace(WHOLE, sub_agents=(), model_calls=(), input_tokens=7)
    assert own_view(alone) == alone


def test_a_sub_agent_alone_and_with_those_below_it() -> None:
    own = replace(
        WHOLE,
        span_id="2",
        agent="billing",
        user_input="INV-9?",
        tool_calls=(BILLED,),
        sub_agents=(),
        model_calls=(MODELS[1],),
        final_response="120 EUR",
        model="small",
        input_tokens=20,
        output_tokens=2,
        start_ns=2,
        end_ns=5,
    )
    assert own_view(WHOLE, BILLING) == own
    assert subtree_view(WHOLE, BILLING) == replace(
        own, tool_calls=(BILLED, CHECKED), sub_agents=(TAX,), model_calls=MODELS[1:3], model="tiny", input_tokens=50, output_tokens=5
    )


def test_a_sub_agent_that_failed_is_a_failed_invocation() -> None:
    view = own_view(WHOLE, TAX)
    assert (view.error, view.error_type, view.final_response) == (True, "ValueError", None)


@pytest.mark.parametrize(
    ("calls", "total"),
    [
        ((), (None, None)),
        (MODELS[:2], (30, 3)),
        ((MODELS[0], ModelCall("x", error="boom")), (10, 1)),
        ((MODELS[0], ModelCall("x")), (None, None)),
        ((ModelCall("x", input_tokens=3), ModelCall("y", output_tokens=4)), (3, 4)),
        ((ModelCall("x", error="boom"),), (None, None)),
    ],
)
def test_a_total_is_known_when_every_call_that_answered_was_counted(
    calls: tuple[ModelCall, ...], total: tuple[int | None, int | None]
) -> None:
    assert total_tokens(calls) == total
