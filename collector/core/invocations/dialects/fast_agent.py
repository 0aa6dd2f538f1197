"""fast-agent: its agents, around the calls of model clients and MCP that others instrument.

Recognised by its scopes, the modules of the package. Agents and workflows of agents are known by
the names of their spans alone: `Agent: 'clerk' generate`, `Chain: 'desk' generate`. An agent that
another one calls as a tool has the number of its copy behind its name, `clerk[1]`. The outermost
span is the program, whose turns are the runs. Local tools have no spans: their calls and results
are in the prompts, where the result of a tool that failed is a text like others.
"""

from __future__ import annotations

import re

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "fast_agent."

_AGENT = re.compile(r"\w+: '(.+?)(?:\[\d+\])?' (?:generate|structured|structured_schema)")
_TOOL = "MCP Tool: "


def matches(span: Span) -> bool:
    """Spans of the modules of the package."""
    return span.scope.name.startswith(SCOPE)


def kind(span: Span) -> Kind | None:
    """By the name of the span."""
    if span.name.startswith(_TOOL):
        return "tool"
    return "agent" if _AGENT.fullmatch(span.name) else "other"


def name_of(span: Span) -> str | None:
    """The name of an agent."""
    found = _AGENT.fullmatch(span.name)
    return None if found is None else as_id(found[1])


def may_be_entry(span: Span) -> bool:
    """Agents."""
    return _AGENT.fullmatch(span.name) is not None


FAST_AGENT = Dialect(
    name="fast-agent",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    may_be_entry=may_be_entry,
    name_of=name_of,
    fields=Fields(tool_name=("tool_name",)),
)
