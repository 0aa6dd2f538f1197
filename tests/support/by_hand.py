"""Invocations of an agent that is instrumented by hand, as in `examples/by_hand.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pathgauge.collector.core.invocations.reader import readings
from pathgauge.collector.core.invocations.reading import Reading
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from support.dialects import INSTALLED

VERSION = "gen_ai.agent.version"
REASONS = "gen_ai.response.finish_reasons"
OUTPUT, INPUT = "gen_ai.output.messages", "gen_ai.input.messages"


def text(role: str, content: str, **more: Any) -> str:
    """A list with one message, as the conventions write it."""
    message = {"role": role, "parts": [{"type": "text", "content": content}], **more}
    return json.dumps([message])


def invocation(
    *tools: str,
    trace: str = "trace",
    answer: str | None = "Done.",
    agent: Mapping[str, Any] | None = None,
    chat: Mapping[str, Any] | None = None,
    chats: Sequence[Mapping[str, Any]] | None = None,
    name: str = "refund_agent",
    version: str = "",
    scenario: str = "",
    arguments: str | None = "{}",
    start: float = 0.0,
    tenant: str = "",
    steps: bool = False,
) -> list[Span]:
    """The spans of one turn: the agent, its calls of `tools`, and as many model calls as it needs.

    `answer`: `None` if content is switched off. `agent` and `chat` are more attributes of the agent
    and of the last model call; `chats` replaces all model calls. `steps`: a model call and the tool
    that it asks for are below a span of their own.
    """
    about: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    if version:
        about[VERSION] = version
    if scenario:
        about["pathgauge.scenario.id"] = scenario
    if answer is not None:
        about |= {INPUT: text("user", "Refund it."), OUTPUT: text("assistant", answer)}

    def below(
        id: str,
        title: str,
        offset: float,
        attributes: Mapping[str, Any],
        *,
        parent: str = "agent",
        took: float = 0.4,
    ) -> Span:
        return span(
            f"{id} of {trace}",
            title,
            attributes,
            trace=trace,
            parent=f"{parent} of {trace}",
            start=start + offset,
            end=start + offset + took,
            tenant=tenant,
        )

    spans = [
        span(
            f"agent of {trace}",
            f"invoke_agent {name}",
            about | dict(agent or {}),
            trace=trace,
            start=start,
            end=start + 10,
            tenant=tenant,
        )
    ]
    if chats is None:
        chats = [*({} for _ in tools), dict(chat or {})]
    parents = [f"step {number}" if steps else "agent" for number in range(len(chats))]
    if steps:
        spans += [below(step, "step", at, {}, took=0.95) for at, step in enumerate(parents)]
    for number, (parent, more) in enumerate(zip(parents, chats, strict=True)):
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 10, **more}
        spans.append(below(f"chat {number}", "chat gpt", number, attributes, parent=parent))
    for number, tool in enumerate(tools):
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        if arguments is not None:
            attributes["gen_ai.tool.call.arguments"] = arguments
        title, at = f"execute_tool {tool}", number + 0.5
        parent = parents[number] if steps else "agent"
        spans.append(below(f"tool {number}", title, at, attributes, parent=parent))
    return spans


def reading(*spans: Span) -> Reading:
    """The only invocation in these spans."""
    [found] = readings(Trace("", trace_id("trace"), spans), INSTALLED)
    return found
