"""The example agents: they run a script and create spans like an instrumented agent framework.

The spans follow the GenAI semantic conventions: `invoke_agent` with one `chat` child for each model
request and one `execute_tool` child for each tool call. Nothing here depends on pathgauge or on
scenarios.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from opentelemetry.trace import SpanKind, Tracer
from opentelemetry.util.types import AttributeValue

from pathgauge.collector.cli.demo.scripts import Call, Script
from pathgauge.scorers.types import Json

MODEL_S, TOOL_S = 0.04, 0.01
"""Simulated durations of a model request and of a tool call, in seconds."""


class Agent:
    """One release of an agent. `pause` is called with the simulated duration in seconds."""

    def __init__(
        self, tracer: Tracer, name: str, version: str, model: str, pause: Callable[[float], object]
    ) -> None:
        self._tracer = tracer
        self._name = name
        self._version = version
        self._model = model
        self._pause = pause

    def handle(self, script: Script, conversation_id: str) -> str:
        """Serve one user turn as one trace, and return the answer."""
        messages = [_message("user", _text(script.user_input))]
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": "demo",
            "gen_ai.agent.name": self._name,
            "gen_ai.agent.version": self._version,
            "gen_ai.conversation.id": conversation_id,
            "gen_ai.input.messages": json.dumps(messages),
        }
        with self._tracer.start_as_current_span(
            f"invoke_agent {self._name}", kind=SpanKind.INTERNAL, attributes=attributes
        ) as span:
            for calls in script.rounds:
                ids = [f"call_{len(messages)}_{position}" for position in range(len(calls))]
                messages.append(self._chat(messages, "tool_call", *map(_tool_call, ids, calls)))
                messages.append(_message("tool", *map(self._execute, ids, calls)))
            answer = self._chat(messages, "stop", _text(script.answer))
            span.set_attribute("gen_ai.output.messages", json.dumps([answer]))
        return script.answer

    def _chat(self, messages: list[Json], finish_reason: str, *parts: Json) -> Json:
        """Ask the scripted model, which replies with `parts`."""
        reply = {**_message("assistant", *parts), "finish_reason": finish_reason}
        input_text, output_text = json.dumps(messages), json.dumps([reply])
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "demo",
            "gen_ai.request.model": self._model,
            "gen_ai.response.model": self._model,
            "gen_ai.response.finish_reasons": (finish_reason,),
            "gen_ai.input.messages": input_text,
            "gen_ai.output.messages": output_text,
            "gen_ai.usage.input_tokens": len(input_text) // 4,
            "gen_ai.usage.output_tokens": len(output_text) // 4,
        }
        with self._tracer.start_as_current_span(
            f"chat {self._model}", kind=SpanKind.CLIENT, attributes=attributes
        ):
            self._pause(MODEL_S)
        return reply

    def _execute(self, call_id: str, call: Call) -> Json:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": json.dumps(call.arguments),
            "gen_ai.tool.call.result": json.dumps(call.result),
        }
        with self._tracer.start_as_current_span(
            f"execute_tool {call.name}", kind=SpanKind.INTERNAL, attributes=attributes
        ):
            self._pause(TOOL_S)
        return {"type": "tool_call_response", "id": call_id, "response": call.result}


def _message(role: str, *parts: Json) -> dict[str, Json]:
    return {"role": role, "parts": list(parts)}


def _text(content: str) -> Mapping[str, Json]:
    return {"type": "text", "content": content}


def _tool_call(call_id: str, call: Call) -> Mapping[str, Json]:
    return {"type": "tool_call", "id": call_id, "name": call.name, "arguments": call.arguments}
