"""Makes one call of two tool spans in different places, from a framework and from the SDK below it.

Both write the call that they carry out together, each below its own span of the agent. Spans of
different instrumentations are one call if they have the same name and call id, and overlap. Where
starts are rounded to milliseconds, the inner one may seem to end later.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from pathgauge.collector.core.invocations.call_slots import call_id
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.tree import Tree


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
            kept.describe_also(part.spans, part.dialects)
            part.kind = "other"


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
