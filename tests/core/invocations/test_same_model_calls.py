"""Two instrumentations of one client write siblings: one call or two?"""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.by_hand import INPUT, OUTPUT, text
from support.dialects import read

AGENT = span("agent", "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"}, end=20)
CONTENT = {INPUT: text("user", "Where is it?"), OUTPUT: text("assistant", "At home.")}


def chat(
    id: str, at: tuple[float, float], scope: str, tokens: int | None = 5, more: Any = None
) -> Span:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": tokens}
    start, end = at
    return span(
        id,
        "chat m",
        {**attributes, **(more or {})},
        parent="agent",
        start=start,
        end=end,
        scope=scope,
    )


def of(*spans: Span) -> Invocation:
    [invocation] = read(Trace("", trace_id("trace"), (AGENT, *spans)))
    return invocation


@pytest.mark.parametrize(
    ("second", "calls"),
    [
        (chat("b", (2, 3), "sdk"), 1),
        (chat("b", (1, 4), "sdk"), 1),
        (chat("b", (2, 3), "sdk", more={"gen_ai.response.id": "r1"}), 1),
        (chat("b", (2, 5), "sdk", more={"gen_ai.response.id": "r1"}), 1),
        (chat("b", (2, 3), "sdk", tokens=None), 1),
        (chat("b", (2, 3), "sdk", more={"gen_ai.response.id": "r2"}), 2),
        (chat("b", (2, 3), "sdk", tokens=6), 2),
        (chat("b", (2, 5), "sdk"), 2),
        (chat("b", (5, 6), "sdk"), 2),
        (chat("b", (2, 3), "wrapper"), 2),
    ],
)
def test_spans_of_two_instrumentations_are_one_call_if_nothing_speaks_against_it(
    second: Span, calls: int
) -> None:
    first = chat("a", (1, 4), "wrapper", more={"gen_ai.response.id": "r1", **CONTENT})
    assert len(of(first, second).model_calls) == calls


def test_the_content_and_the_tokens_of_both_spans_are_one_answer() -> None:
    """The later span has no content and would seem to have answered nothing."""
    one = of(chat("a", (1, 4), "wrapper", more=CONTENT), chat("b", (2, 3), "sdk"))
    assert (one.user_input, one.final_response, one.output_tokens) == (
        "Where is it?",
        "At home.",
        5,
    )


def test_the_span_of_the_client_tells_the_calls_that_the_other_leaves_out() -> None:
    """As those of LangChain and OpenAI under OpenLLMetry for JavaScript."""
    ended = '[{"role": "assistant", "parts": [{"type": "text", "content": ""}]}]'
    call = '{"type": "tool_call", "id": "c1", "name": "look", "arguments": {"order": 1}}'
    asking = f'[{{"role": "assistant", "parts": [{call}]}}]'
    one = of(
        chat("a", (1, 4), "wrapper", more={OUTPUT: ended}),
        chat("b", (2, 3), "sdk", more={OUTPUT: asking, "gen_ai.response.id": "r1"}),
    )
    assert [(one.id, one.name, one.arguments) for one in one.tool_calls] == [
        ("c1", "look", {"order": 1})
    ]


def test_which_of_two_concurrent_calls_a_span_without_an_id_describes_is_not_guessed() -> None:
    one = of(chat("a", (1, 5), "wrapper"), chat("b", (1.5, 6), "wrapper"), chat("c", (2, 3), "sdk"))
    assert len(one.model_calls) == 3


def test_a_span_around_two_calls_of_another_instrumentation_is_none_of_them() -> None:
    one = of(chat("a", (1, 9), "wrapper"), chat("b", (2, 3), "sdk"), chat("c", (4, 5), "sdk"))
    assert len(one.model_calls) == 3
