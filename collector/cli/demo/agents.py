"""The example agents: a script comes in, OpenTelemetry spans go out, as an instrumented agent
framework makes them.

The spans follow the GenAI semantic conventions: `invoke_agent` around one `chat` a model request
and one `execute_tool` a tool call. Nothing here knows of pathgauge, or of scenarios.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from opentelemetry.trace import SpanKind, Tracer
from opentelemetry.util.types import AttributeValue

from pathgauge.collector.cli.demo.scripts import Call, Script
from pathgauge.scorers.types import Json

MODEL_S, TOOL_S = 0.04, 0.01
"""How long a model request and a tool call pretend to take, in seconds."""


class Agent:
    """One release of an agent. `pause` is called with the seconds that models and tools take."""

    def __init__(
        self, tracer: Tracer, name: str, version: str, model: str, pause: Callable[[float], object]
    ) -> None:
        self._tracer = tracer
        self._name = name
        self._version = version
        self._model = model
        self._pause = pause

    def handle(self, script: Script, conversation_id: str) -> str:
        """Serve one user turn and return the answer; one trace."""
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
        """Ask the model, whose script says that it replies `parts`."""
        reply = {**_message("assistant", *parts), "finish_reason": finish_reason}
        asked, replied = json.dumps(messages), json.dumps([reply])
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "demo",
            "gen_ai.request.model": self._model,
            "gen_ai.response.model": self._model,
            "gen_ai.response.finish_reasons": (finish_reason,),
            "gen_ai.input.messages": asked,
            "gen_ai.output.messages": replied,
            "gen_ai.usage.input_tokens": len(asked) // 4,
            "gen_ai.usage.output_tokens": len(replied) // 4,
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
