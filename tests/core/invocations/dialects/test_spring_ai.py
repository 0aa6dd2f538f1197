"""Special cases of Spring AI that the captures do not have, with handwritten spans."""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED, read

SCOPE = "org.springframework.boot"


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def observed(
    id: str, kind: str, during: tuple[float, float], parent: str | None, **more: Any
) -> Span:
    """A span with a kind of Spring AI. In names of attributes, `__` stands for a dot."""
    start, end = during
    attributes = {f"spring.ai.{key.replace('__', '.')}": value for key, value in more.items()}
    attributes |= {"spring.ai.kind": kind, "gen_ai.operation.name": "framework"}
    return span(id, kind, attributes, parent=parent, start=start, end=end, scope=SCOPE)


def chat(id: str, start: float, parent: str, **more: Any) -> Span:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
    attributes |= {key.replace("__", "."): value for key, value in more.items()}
    return span(id, "chat m-1", attributes, parent=parent, start=start, end=start + 1, scope=SCOPE)


def test_a_run_has_no_name_and_no_texts() -> None:
    run = observed("run", "chat_client", (0, 9), None, chat__client__conversation__id="c-1")
    [one] = of(run, observed("call", "advisor", (1, 8), "run"), chat("m", 2, "call"))
    assert (one.dialect, one.agent, one.conversation_id) == ("spring-ai", None, "c-1")
    assert (one.user_input, one.final_response, one.model) == (None, None, "m-1")
    assert "content_missing" in one.flags


def test_the_text_none_is_no_model() -> None:
    failed = chat("m", 2, "run", gen_ai__response__model="none")
    [one] = of(observed("run", "chat_client", (0, 9), None), failed)
    assert one.model == "m-1"
    unknown = {"gen_ai__request__model": "none", "gen_ai__response__model": "none"}
    [other] = of(observed("run", "chat_client", (0, 9), None), chat("m", 2, "run", **unknown))
    assert other.model is None


def test_a_client_that_a_tool_calls_is_a_sub_agent() -> None:
    [one] = of(
        observed("run", "chat_client", (0, 20), None),
        chat("m", 1, "run"),
        observed("t", "tool_call", (3, 9), "run", tool__definition__name="ask"),
        observed("inner", "chat_client", (4, 8), "t"),
        chat("n", 5, "inner"),
    )
    assert [(call.name, call.kind) for call in one.tool_calls] == [("ask", "agent")]
    assert [run.via for run in one.sub_agents] == ["agent"]
    assert len(one.model_calls) == 2


def test_the_tools_of_newer_versions_have_ids() -> None:
    [one] = of(
        observed("run", "chat_client", (0, 20), None),
        chat("m", 1, "run"),
        observed(
            "t",
            "tool_call",
            (3, 4),
            "run",
            tool__definition__name="look",
            tool__call__id="c1",
            tool__call__arguments='{"id": "A-1"}',
            tool__call__result='"found"',
        ),
    )
    [call] = one.tool_calls
    assert (call.id, call.arguments, call.result) == ("c1", {"id": "A-1"}, "found")


def test_a_run_that_never_arrived_is_flagged() -> None:
    [one] = of(observed("call", "advisor", (1, 8), "run"), chat("m", 2, "call"))
    assert "missing_root" in one.flags


def test_only_runs_may_be_entries() -> None:
    assert INSTALLED.may_be_entry(span("run", "spring_ai chat_client", scope=SCOPE))
    assert not INSTALLED.may_be_entry(chat("m", 1, "run"))
