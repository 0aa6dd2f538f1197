"""An agent that does what a table says, and is instrumented with the OpenTelemetry SDK.

A run is a mapping with `calls`, `answer`, `seconds`, `tokens` and `error`. A call is a name, or a
mapping with `name`, `args`, `result` and `error`; with `agent` it is a delegation to a sub-agent,
which has `calls` and an `answer` of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context

from pathgauge.collector.client import scenario

BEGAN_NS = 1_700_000_000_000_000_000
STEP_NS = 1_000_000
QUESTION = "Please do it."


class ScriptedAgent:
    """Runs scripts; each run is a trace."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._now = BEGAN_NS

    def run(
        self, name: str, scenario_id: str, conversation: str, script: Mapping[str, Any]
    ) -> None:
        """Handle one message of the user. The spans have ended when this returns."""
        with scenario(scenario_id):
            self._agent(name, conversation, script, None)

    def _agent(
        self, name: str, conversation: str, script: Mapping[str, Any], parent: Span | None
    ) -> None:
        began = self._now
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": name,
            "gen_ai.conversation.id": conversation,
            "gen_ai.input.messages": _messages("user", script.get("input", QUESTION)),
        }
        span = self._begin(f"invoke_agent {name}", attributes, parent)
        for call in script.get("calls", ()):
            self._call({"name": call} if isinstance(call, str) else call, conversation, span)
        answer = script.get("answer", "It is done.")
        self._chat(span, "stop", {"type": "text", "content": answer}, script)
        span.set_attribute("gen_ai.output.messages", _messages("assistant", answer))
        if "error" in script:
            span.set_attribute("error.type", script["error"])
            span.set_status(Status(StatusCode.ERROR, script["error"]))
        self._now = max(self._now, began + round(script.get("seconds", 0) * 1e9))
        span.end(self._now)

    def _call(self, call: Mapping[str, Any], conversation: str, parent: Span) -> None:
        arguments = call.get("args", {})
        part = {"type": "tool_call", "name": call["name"], "arguments": arguments}
        self._chat(parent, "tool_call", part, {})
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call["name"],
            "gen_ai.tool.call.arguments": json.dumps(arguments),
            "gen_ai.tool.call.result": json.dumps(call.get("result", {"ok": True})),
        }
        span = self._begin(f"execute_tool {call['name']}", attributes, parent)
        if "agent" in call:
            self._agent(call["agent"], conversation, call, span)
        if call.get("error"):
            span.set_attribute("error.type", "tool_error")
            span.set_status(Status(StatusCode.ERROR, "tool_error"))
        span.end(self._tick())

    def _chat(
        self, parent: Span, finish_reason: str, part: Mapping[str, Any], script: Mapping[str, Any]
    ) -> None:
        reply = {"role": "assistant", "parts": [part], "finish_reason": finish_reason}
        tokens: Sequence[int] = script.get("tokens", (10, 5))
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "scripted",
            "gen_ai.response.finish_reasons": (finish_reason,),
            "gen_ai.output.messages": json.dumps([reply]),
            "gen_ai.usage.input_tokens": tokens[0],
            "gen_ai.usage.output_tokens": tokens[1],
        }
        span = self._begin("chat scripted", attributes, parent)
        if failure := script.get("model_error"):
            span.set_attribute("error.type", failure)
            span.set_status(Status(StatusCode.ERROR, failure))
        span.end(self._tick())

    def _begin(self, name: str, attributes: Mapping[str, Any], parent: Span | None) -> Span:
        context = None if parent is None else set_span_in_context(parent)
        return self._tracer.start_span(
            name, context=context, attributes=dict(attributes), start_time=self._tick()
        )

    def _tick(self) -> int:
        self._now += STEP_NS
        return self._now


def _messages(role: str, content: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": content}]}])
