"""What LangGraph and LangChain tell in their run metadata, which OpenInference, OpenLLMetry,
LangSmith and Langfuse pass on.

Every node and every graph is a chain run. A graph made by `create_agent` names its agent in
`lc_agent_name`, as do all runs inside it. The metadata of a node holds its name in
`langgraph_node`; a graph that runs inside a node inherits it, so a node is a run of that name.
`langgraph_checkpoint_ns` (`coordinator:<uuid>|agent:<uuid>`) leads from the outermost graph to the
node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.otlp.spans import Span

AGENT_NAME, THREAD, NODE, PATH = (
    "lc_agent_name",
    "thread_id",
    "langgraph_node",
    "langgraph_checkpoint_ns",
)

_TOOL_NODE = "tools"


def kind(name: str, metadata: Mapping[str, Any]) -> Kind:
    """What a chain run called `name` stands for."""
    agent = metadata.get(AGENT_NAME)
    if name == metadata.get(NODE) and name != agent:
        return "other"
    return "named_step" if agent else "chain"


def may_be_entry(span: Span) -> bool:
    """Whether a span may be the run of a whole graph, told by its bytes."""
    return b"lc_agent_name" in span.raw and b"langgraph_node" not in span.raw


def enclosing_graph(path: Any) -> str | None:
    """The graph that a node is part of, by the node's path, when that graph is itself a node, as
    agents under a supervisor are.
    """
    nodes = str(path or "").split("|")
    name = nodes[-2].partition(":")[0] if len(nodes) > 1 else None
    return name if name and name != _TOOL_NODE else None


def only_call(value: Any) -> Mapping[str, Any] | None:
    """The tool call in the input of a tools node when it is the only one, so that the node tells
    its arguments and id.
    """
    calls: Sequence[Any] = (
        value
        if isinstance(value, list)
        else [value.get("tool_call")]
        if isinstance(value, dict)
        else []
    )
    call = calls[0] if len(calls) == 1 else None
    return call if isinstance(call, dict) and call.get("type") == "tool_call" else None
