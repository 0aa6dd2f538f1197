"""The tokens of model calls that state those of several calls together, as Spring AI's do."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

TOOL_CALLS, STOP = '["TOOL_CALLS"]', '["STOP"]'
Tokens = tuple[int | None, int | None]


def of(*spans: Span) -> Invocation:
    [found] = read(Trace("", trace_id("trace"), (run(), *spans)))
    return found


def run() -> Span:
    attributes = {"gen_ai.operation.name": "framework", "spring.ai.kind": "chat_client"}
    return span("run", "spring_ai chat_client", attributes, end=30)


def chat(
    start: float,
    tokens: tuple[int, int] | None,
    finish: str = TOOL_CALLS,
    *,
    parent: str = "run",
    **options: Any,
) -> Span:
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.finish_reasons": finish,
        "spring.ai.model.request.tool.names": '["look"]',
    }
    if tokens is not None:
        attributes["gen_ai.usage.input_tokens"] = str(tokens[0])
        attributes["gen_ai.usage.output_tokens"] = str(tokens[1])
    return span(
        f"chat {start}",
        "chat m",
        attributes,
        parent=parent,
        start=start,
        **{"end": start + 1, **options},
    )


def tool(start: float, *, parent: str = "run", operation: str = "framework") -> Span:
    attributes = {
        "gen_ai.operation.name": operation,
        "spring.ai.kind": "tool_call",
        "spring.ai.tool.definition.name": "look",
    }
    return span(
        f"tool {start}", "tool_call look", attributes, parent=parent, start=start, end=start + 1
    )


def own(found: Invocation) -> list[Tokens]:
    return [(call.input_tokens, call.output_tokens) for call in found.model_calls]


def total(found: Invocation) -> Tokens:
    return found.input_tokens, found.output_tokens


def test_the_differences_of_added_up_counts_are_those_of_each_call() -> None:
    found = of(
        chat(1, (10, 2)),
        tool(2),
        tool(3),
        chat(4, (30, 5)),
        tool(5),
        chat(6, (60, 9), STOP),
    )
    assert (own(found), total(found)) == ([(10, 2), (20, 3), (30, 4)], (60, 9))


def test_a_lost_call_leaves_the_total_right() -> None:
    found = of(chat(1, (10, 2)), tool(2), tool(5), chat(6, (60, 9), STOP))
    assert (own(found), total(found)) == ([(10, 2), (50, 7)], (60, 9))


def test_a_failed_call_states_nothing() -> None:
    found = of(chat(1, (10, 2)), tool(2), chat(4, None, "none", error="HTTP 500"))
    assert (own(found), total(found)) == ([(10, 2), (None, None)], (10, 2))


def test_loops_of_their_own_are_not_added_up() -> None:
    found = of(chat(1, (10, 2)), tool(2), chat(3, (30, 5), STOP), chat(5, (40, 4), STOP))
    assert (own(found), total(found)) == ([(10, 2), (20, 3), (40, 4)], (70, 9))


def test_tools_that_an_advisor_carries_out_add_nothing_up() -> None:
    found = of(chat(1, (10, 2)), tool(2, operation="execute_tool"), chat(4, (30, 5), STOP))
    assert (own(found), total(found)) == ([(10, 2), (30, 5)], (40, 7))


def test_without_the_tool_between_them_the_second_call_is_unknown() -> None:
    found = of(chat(1, (10, 2)), chat(4, (30, 5), STOP))
    assert (own(found), total(found)) == ([(10, 2), (None, None)], (None, None))
    assert "no_tool_spans" in found.flags


@pytest.mark.parametrize("second", [(8, 5), (30, 1)])
def test_counts_that_decrease_are_flagged_and_not_used(second: tuple[int, int]) -> None:
    found = of(chat(1, (10, 2)), tool(2), chat(4, second, STOP))
    assert (own(found), total(found)) == ([(10, 2), (None, None)], (None, None))
    assert "llm_detail_unreliable" in found.flags


def test_calls_inside_one_another_have_a_total_only() -> None:
    found = of(
        chat(1, (60, 9), STOP, end=20),
        tool(2, parent="chat 1"),
        chat(4, (60, 9), STOP, parent="chat 1", end=20),
        tool(5, parent="chat 4"),
        chat(7, (60, 9), STOP, parent="chat 4", end=20),
    )
    assert (own(found), total(found)) == ([(None, None)] * 3, (60, 9))
    assert len(found.tool_calls) == 2
    assert found.flags == {"content_missing"}


def test_calls_inside_one_another_that_differ_are_flagged() -> None:
    found = of(
        chat(1, (10, 2), STOP, end=20),
        tool(2, parent="chat 1"),
        chat(4, (60, 9), STOP, parent="chat 1"),
    )
    assert (own(found), total(found)) == ([(None, None)] * 2, (None, None))
    assert "llm_detail_unreliable" in found.flags


def test_a_call_inside_another_without_a_tool_has_lost_it() -> None:
    found = of(chat(1, (60, 9), STOP, end=20), chat(4, (60, 9), STOP, parent="chat 1"))
    assert total(found) == (60, 9)
    assert "lost_tool_calls" in found.flags


def test_calls_inside_one_another_may_count_for_themselves() -> None:
    found = of(
        chat(1, (10, 2), STOP, end=20),
        tool(2, parent="chat 1", operation="execute_tool"),
        chat(4, (30, 5), STOP, parent="chat 1"),
    )
    assert (own(found), total(found)) == ([(10, 2), (30, 5)], (40, 7))


def test_a_failed_call_in_between_changes_nothing() -> None:
    found = of(
        chat(1, (10, 2)),
        tool(2),
        chat(4, None, "none", error="HTTP 500"),
        chat(6, (30, 5), STOP),
    )
    assert (own(found), total(found)) == ([(10, 2), (None, None), (20, 3)], (30, 5))


def test_a_call_inside_one_of_another_library_is_the_same_call() -> None:
    outer = span("chat 1", "chat m", {"gen_ai.operation.name": "chat"}, parent="run", end=9)
    found = of(outer, chat(2, (30, 5), STOP, parent="chat 1"))
    assert (own(found), total(found)) == ([(30, 5)], (30, 5))
