"""Special cases of Semantic Kernel: function names with their plugin, messages in Python's logging,
its runtime.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.testing import log, span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "semantic_kernel.functions.kernel_function"
ASKED = {
    "role": "assistant",
    "tool_calls": [{"id": "c1", "function": {"name": "Orders-find", "arguments": '{"order": 1}'}}],
}


def of(*items: Span | LogRecord) -> list[Invocation]:
    spans = tuple(item for item in items if isinstance(item, Span))
    return read(
        Trace(
            "",
            trace_id("trace"),
            spans,
            tuple(item for item in items if isinstance(item, LogRecord)),
        )
    )


def agent(name: str = "a") -> Span:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return span("agent", f"invoke_agent {name}", attributes, end=9, scope=SCOPE)


def tool(name: str, *, scope: str = SCOPE, parent: str = "agent", id: str = "t") -> Span:
    return span(
        id,
        f"execute_tool {name}",
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name},
        parent=parent,
        start=2,
        scope=scope,
    )


def model(*, scope: str = SCOPE, more: dict[str, Any] | None = None) -> Span:
    return span(
        "m",
        "chat gpt",
        {"gen_ai.operation.name": "chat", **(more or {})},
        parent="agent",
        start=1,
        scope=scope,
    )


def choice(message: dict[str, Any]) -> LogRecord:
    return log(
        "",
        {"event.name": "gen_ai.choice"},
        body=json.dumps({"message": message, "finish_reason": "tool_calls"}),
        span="m",
    )


@pytest.mark.parametrize(
    ("known", "name"),
    [
        ("Orders-find", "find"),
        ("Orders-find-all", "find-all"),
        ("find", "find"),
        ("Handoff-transfer_to_b", "transfer_to_b"),
    ],
)
def test_a_function_is_called_without_its_plugin(known: str, name: str) -> None:
    [one] = of(agent(), tool(known))
    assert [(call.name, call.kind) for call in one.tool_calls] == [
        (name, "handoff" if name.startswith("transfer") else "function")
    ]


@pytest.mark.parametrize("scope", [SCOPE, "opentelemetry.instrumentation.openai_v2"])
def test_a_function_that_a_model_asks_for_is_called_without_its_plugin_too(scope: str) -> None:
    [one] = of(agent(), model(scope=scope), choice(ASKED), tool("Orders-find"))
    assert [(call.id, call.name, call.arguments) for call in one.tool_calls] == [
        ("c1", "find", {"order": 1})
    ]


def test_names_with_hyphens_stay_whole_everywhere_else() -> None:
    [one] = of(agent(), tool("Web-get-page"), tool("get-page", scope="mcp", parent="t", id="mcp"))
    assert [call.name for call in one.tool_calls] == ["get-page"]


def test_ordinary_log_records_are_no_messages() -> None:
    [one] = of(
        agent(),
        model(),
        log("", {"code.line.number": 1}, body='{"role": "user", "content": "no"}', span="m"),
    )
    assert (one.user_input, one.final_response) == (None, None)


@pytest.mark.parametrize(
    ("reason", "flags"),
    [
        ("FinishReason.TOOL_CALLS", ["content_missing", "no_tool_spans"]),
        ("FinishReason.STOP", ["content_missing"]),
    ],
)
def test_the_finish_reason_tells_whether_calls_are_missing(reason: str, flags: list[str]) -> None:
    [one] = of(agent(), model(more={"gen_ai.response.finish_reason": reason}))
    assert sorted(one.flags) == flags


def test_a_model_call_of_the_manager_of_an_orchestration_is_no_invocation() -> None:
    message = span(
        "msg",
        "agent_runtime process manager.(1)-A",
        {"messaging.operation": "process"},
        scope="agent_runtime InProcessRuntime",
    )
    assert (
        of(
            message,
            span("m", "chat gpt", {"gen_ai.operation.name": "chat"}, parent="msg", scope=SCOPE),
        )
        == []
    )
