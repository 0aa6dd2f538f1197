"""The run metadata of LangGraph and LangChain, which OpenInference, OpenLLMetry, LangSmith and
Langfuse pass on.

Every node and every graph is a chain run. A graph made by `create_agent` has the name of its agent
in `lc_agent_name`, and so have all runs inside it. The metadata of a node has its name in
`langgraph_node`. A graph that runs inside a node inherits that key, so a node is only a run with
that same name. `langgraph_checkpoint_ns` (`coordinator:<uuid>|agent:<uuid>`) is the path from the
outermost graph to the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.otlp.spans import Span

AGENT_NAME, THREAD = "lc_agent_name", "thread_id"
NODE, PATH = "langgraph_node", "langgraph_checkpoint_ns"

TOOL_NODE = "tools"
_STEPS = ("Runnable", "Channel")
"""How the names of chain runs begin that are steps of a graph."""


def kind(name: str, metadata: Mapping[str, Any]) -> Kind:
    """What a chain run called `name` represents."""
    agent = metadata.get(AGENT_NAME)
    if name == metadata.get(NODE) and name != agent:
        return "other"
    if agent:
        return "named_step"
    return "chain"


def kind_in_javascript(name: str, metadata: Mapping[str, Any]) -> Kind:
    """As `kind`. In JavaScript all graphs below an agent have the name of that agent in their
    metadata, so a graph inside a tool is known by its position only.
    """
    if name == metadata.get(AGENT_NAME) or is_graph_in_tool(name, metadata):
        return "named_step"
    if name == metadata.get(NODE):
        return "other"
    return "chain"


def is_graph_in_tool(name: str, metadata: Mapping[str, Any]) -> bool:
    """Whether a chain run called `name` is the graph of an agent that a tool runs."""
    is_in_tool = metadata.get(NODE) == TOOL_NODE and name != TOOL_NODE
    return is_in_tool and not name.startswith(_STEPS)


def may_be_entry(span: Span) -> bool:
    """Whether a span may be the run of a whole graph, judged by its bytes."""
    return b"lc_agent_name" in span.raw and b"langgraph_node" not in span.raw


def enclosing_graph(path: Any) -> str | None:
    """The graph that contains the node with this path, if that graph is itself a node, as agents
    under a supervisor are.
    """
    nodes = str(path or "").split("|")
    name = nodes[-2].partition(":")[0] if len(nodes) > 1 else None
    if name and name != TOOL_NODE:
        return name
    return None


def only_call(value: Any) -> Mapping[str, Any] | None:
    """The tool call in the input of a tools node, if it is the only one. The node then tells its
    arguments and id.
    """
    call = value.get("tool_call") if isinstance(value, dict) else None
    if isinstance(value, list) and len(value) == 1:
        call = value[0]
    if isinstance(call, dict) and call.get("type") == "tool_call":
        return call
    return None
