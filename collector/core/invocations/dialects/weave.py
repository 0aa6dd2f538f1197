"""OpenAI Agents as instrumented by W&B Weave.

Recognised by the scope `weave.openai_agents`. Agents, model calls and tools follow the GenAI
conventions. A run and the turns of an agent have no operation; the attributes `weave.*` tell what
they are. A run inside the call of a tool is that of the agent there. With the chat API, messages
lack their tool calls: calls are known from the spans of tools and handoffs, and have no ids.
"""

from __future__ import annotations

from dataclasses import replace

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.genai import GENAI, kind as stated_kind
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "weave.openai_agents"

_RUN, _HANDOFF = f"{SCOPE}.task.workflow_name", f"{SCOPE}.handoff.to_agent"


def kind(span: Span) -> Kind | None:
    """The stated kind. Of the other spans, a run is a workflow; turns and guardrails only connect
    others.
    """
    stated = stated_kind(span)
    if stated is not None:
        return stated
    if _RUN in span.attributes:
        return "workflow"
    return "handoff" if _HANDOFF in span.attributes else "other"


WEAVE = replace(
    GENAI,
    before=("genai",),
    scopes=(SCOPE,),
    names=(),
    key_prefixes=(),
    matches=lambda span: span.scope.name == SCOPE,
    kind=kind,
    reads=(*GENAI.reads, _RUN, _HANDOFF),
    entry_names=(*GENAI.entry_names, "workflow "),
)
