"""Makes one call of two tool spans in different places, from a framework and from the SDK below it.

Both write the call that they carry out together, each below its own span of the agent. Spans of
different instrumentations are one call if they have the same name and call id, and overlap. Where
starts are rounded to milliseconds, the inner one may seem to end later.

The client of an MCP server does not know the call id, nor the prefix that a framework adds to the
name of a tool. Its span is part of the call of this tool that the same agent had running meanwhile.
Usually it is below the span of that call, but not if the framework writes the span afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from pathgauge.collector.core.invocations.call_slots import call_id
from pathgauge.collector.core.invocations.dialects.field_paths import first as first_value
from pathgauge.collector.core.invocations.messages.values import decode
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.same_arguments import contradict
from pathgauge.collector.core.invocations.tree import Tree

MAX_CONCURRENT = 32
"""Bound on the running calls of an agent that the span of an MCP client is compared with."""

_MCP = "mcp.method.name"


def join_tool_calls(tree: Tree) -> None:
    """Turn one of two spans into a part of the other: of that with an agent below it, otherwise of
    the one that started first.
    """
    tools = [node for node in tree.nodes if node.kind == "tool"]
    if len({node.span.scope.name for node in tools}) < 2:
        return
    for first, second in pairwise(_by_call(tools)):
        if _is_same_call(first, second):
            kept, part = (second, first) if tree.children(second) else (first, second)
            _add_to(kept, part)
    _join_mcp_clients(node for node in tools if node.kind == "tool")


def _add_to(kept: Node, part: Node) -> None:
    kept.describe_also(part.spans, part.dialects)
    part.kind = "other"


def _join_mcp_clients(tools: Iterable[Node]) -> None:
    """Turn the spans of MCP clients into parts of the calls during which they ran. `tools` are by
    start, the enclosing one first.
    """
    by_run: dict[str | None, list[Node]] = defaultdict(list)
    for node in tools:
        running = by_run[node.run]
        if _MCP in node.span.attributes and call_id(node) is None:
            around = next((one for one in running if _carries_out(node, one)), None)
            if around is not None:
                _add_to(around, node)
                continue
        start_ns = node.span.start_ns
        running[:] = [one for one in running if one.span.end_ns > start_ns][1 - MAX_CONCURRENT :]
        running.append(node)


def _carries_out(client: Node, call: Node) -> bool:
    """Whether the span of an MCP client is part of a call, which has no such part yet."""
    if any(_MCP in span.attributes for span in call.spans):
        return False
    if call.span.end_ns < client.span.end_ns or call.span.scope.name == client.span.scope.name:
        return False
    return _is_tool_of(client.name, call.name) and not contradict(
        _arguments(call), _arguments(client)
    )


def _is_tool_of(name: str | None, known_as: str | None) -> bool:
    """Whether a framework may know a tool of an MCP server under a name: with or without prefix."""
    if not name or not known_as or not known_as.endswith(name):
        return False
    prefix = known_as[: -len(name)]
    return not prefix or not prefix[-1].isalnum()


def _arguments(node: Node) -> Any:
    return decode(first_value(node.spans, node.fields.arguments)).value


def _by_call(tools: Iterable[Node]) -> list[Node]:
    """Those with a call id, the spans of one call side by side, by start."""
    known = [(identifier, node) for node in tools if (identifier := call_id(node)) is not None]
    known.sort(key=lambda one: (one[0], one[1].name or "", one[1].span.start_ns))
    return [node for _, node in known]


def _is_same_call(first: Node, second: Node) -> bool:
    if first.kind != "tool" or first.span.scope.name == second.span.scope.name:
        return False
    if (call_id(first), first.name) != (call_id(second), second.name):
        return False
    return second.span.start_ns <= first.span.end_ns
