"""The Claude Agent SDK as instrumented by OpenInference.

Recognised by its scope, which the dialect of OpenInference leaves out. A turn is an agent with the
tools below it, from what the SDK reports to the program; model calls have no spans. The model of an
answer that the SDK made from an error is `<synthetic>`.

Names of agents are not read: they are those of a method, or of the tool that runs a sub-agent. Its
work counts as that of the agent. Nor are tokens read: those of the output are of the first event of
each reply, and those of sub-agents are missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived
from pathgauge.collector.core.invocations.dialects.openinference import (
    CLAUDE_AGENT_SDK as SCOPE,
    KIND,
    OPENINFERENCE,
    kind as stated_kind,
)
from pathgauge.collector.core.otlp.spans import Span

_TURNS = ("ClaudeAgentSDK.query", "ClaudeAgentSDK.ClaudeSDKClient.receive_response")
_AGENT_TOOLS = ("Agent", "Task")
_TOOL_NAME, _MODEL = "tool.name", "llm.model_name"
_NO_MODEL = "<synthetic>"


def matches(span: Span) -> bool:
    """Spans of the instrumentation."""
    return span.scope.name == SCOPE and KIND in span.attributes


def kind(span: Span) -> Kind | None:
    """The stated kind, except for what goes on inside the tool that runs a sub-agent."""
    stated = stated_kind(span)
    return "other" if stated == "agent" and span.name not in _TURNS else stated


def _output(span: Span) -> Any:
    """The answer of a turn."""
    if not matches(span) or span.attributes.get(_MODEL) == _NO_MODEL:
        return None
    return span.attributes.get("output.value")


def _tool_type(span: Span) -> str | None:
    """The type that ADK gives to tools that run a sub-agent."""
    is_agent = matches(span) and span.attributes.get(_TOOL_NAME) in _AGENT_TOOLS
    return "AgentTool" if is_agent else None


CLAUDE_AGENT_SDK = replace(
    OPENINFERENCE,
    before=("openinference",),
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    name_of=None,
    fields=replace(
        OPENINFERENCE.fields,
        agent_name=(),
        tool_type=(Derived(_tool_type, reads=(_TOOL_NAME,)),),
        total_input_tokens=(),
        total_output_tokens=(),
        output_messages=(),
        agent_output=(Derived(_output),),
    ),
)
