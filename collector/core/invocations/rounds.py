"""Spans of a model that enclose several rounds: the model asks for tools, which run, and the model
is called again.

Such a span does not tell what was asked for in which round. Tools that ran at the same time were
asked for together, all others one after the other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.node import Node
from pathgauge.scorers.types import ToolCall


def leave_out_covered(nodes: Iterable[Node]) -> None:
    """Make mere links of a span whose rounds another instrumentation writes one by one, and of the
    agent that this sees there. Parents are known already.
    """
    for node in nodes:
        model = node.parent
        if node.kind == "agent" and model is not None and _may_enclose(model):
            for link in (model, node):
                link.classified = link.kind = "other"


def of_several_rounds(steps: Sequence[Step], tools: Sequence[Node]) -> frozenset[int]:
    """The numbers of the model calls whose span encloses several, with the tool calls that they
    asked for, and states the tokens of the last one alone. `tools` are ordered by start.
    """
    if not any(_may_enclose(step.node) for step in steps):
        return frozenset()
    by_parent: dict[int, list[Node]] = defaultdict(list)
    for tool in tools:
        by_parent[id(tool.parent)].append(tool)
    return frozenset(
        number
        for number, step in enumerate(steps)
        if _may_enclose(step.node)
        and (id(step.node) in by_parent or _has_beside(step.node, by_parent))
    )


def _has_beside(model: Node, by_parent: Mapping[int, Sequence[Node]]) -> bool:
    """Whether the first tool of the same parent that started during the model ran inside of it."""
    beside = by_parent.get(id(model.parent), ())
    at = bisect_left(beside, model.span.start_ns, key=lambda tool: tool.span.start_ns)
    return at < len(beside) and _ran_inside(beside[at], model)


def is_inside(tool: Node, model: Node) -> bool:
    """Whether the span of a model encloses the round that asked for a tool."""
    return _may_enclose(model) and _ran_inside(tool, model)


def by_rounds(
    calls: Sequence[ToolCall], several: Collection[int], steps: int
) -> tuple[ToolCall, ...]:
    """The calls with groups that tell which of those inside a span ran at the same time. `several`:
    the model calls whose span encloses several, by the number with which `calls` refer to them;
    `steps`: how many model calls there are.
    """
    if not several:
        return tuple(calls)
    found = list(calls)
    inside = [at for at, call in enumerate(calls) if call.group in several]
    for number, members in enumerate(_at_the_same_time(calls, inside), steps):
        for at in members:
            found[at] = replace(calls[at], group=number if len(members) > 1 else None)
    return tuple(found)


def _may_enclose(node: Node) -> bool:
    """Whether the node is a model span of a dialect that writes several rounds as one."""
    return node.classified == "model" and any(one.states_last_round for one in node.dialects)


def _ran_inside(tool: Node, model: Node) -> bool:
    """Below the span of the model, or beside it as a tool of the same instrumentation that started
    during it.
    """
    if tool.parent is model:
        return True
    if tool.parent is not model.parent or tool.dialect is not model.dialect:
        return False
    return model.span.start_ns <= tool.span.start_ns < model.span.end_ns


def _at_the_same_time(calls: Sequence[ToolCall], inside: Iterable[int]) -> Iterator[list[int]]:
    """The positions of neighbours that are inside one span and overlap. Some frameworks write the
    start in whole milliseconds: calls with the same start overlap even if the first took no time.
    """
    members: list[int] = []
    end_ns = 0
    for at in inside:
        call = calls[at]
        if members and not _is_of_same_round(call, calls[members[-1]], end_ns):
            yield members
            members, end_ns = [], 0
        members.append(at)
        end_ns = max(end_ns, call.end_ns or 0)
    if members:
        yield members


def _is_of_same_round(call: ToolCall, last: ToolCall, end_ns: int) -> bool:
    """Whether a call was asked for with the last one, and others that ran until `end_ns`."""
    if call.group != last.group:
        return False
    return call.start_ns == last.start_ns or (call.start_ns or 0) < end_ns
