"""What spans without a dialect represent beside the other spans of their trace.

A span alone may state tokens and messages because it is a model call, or because it sums up several
of them: it is a run if model calls and tools are inside of it. Where a dialect understands the
agents of a trace, spans that none understands only connect others: most are the application's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from pathgauge.collector.core.invocations.dialects import Dialect
from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.dialects.genai import GENAI
from pathgauge.collector.core.invocations.dialects.registry import Classified
from pathgauge.collector.core.invocations.dialects.unknown import speaks
from pathgauge.collector.core.invocations.dialects.vocabulary import words
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.spans import Span

_UNDERSTOOD = frozenset(
    {"agent", "workflow", "chain", "named_step", "turn", "nested_agent", "task", "tool"}
)
_WORKFLOWS = frozenset({"workflow", "flow", "team", "crew", "graph", "pipeline"})
"""Words in the names of spans that run several agents as one."""


def without_fallback(
    spans: Sequence[Span], classified: Sequence[Classified], fallback: Dialect
) -> Sequence[Classified] | None:
    """The same without the fallback, if a dialect understands the agents or tools of the trace."""
    if not any(
        kind in _UNDERSTOOD and any(dialect not in (GENAI, fallback) for dialect in dialects)
        for kind, dialects in classified
    ):
        return None
    found: list[Classified] = []
    for span, (kind, dialects) in zip(spans, classified, strict=True):
        if fallback not in dialects:
            found.append((kind, dialects))
            continue
        conventional = GENAI.kind(span) if GENAI in dialects else None
        found.append((conventional or "other", dialects[:-1]))
    return found


def settle_unknown(nodes: Sequence[Node], fallback: Dialect) -> None:
    """Set the kinds of the nodes that only the fallback matches. Parents are known already."""
    guessed = [node for node in nodes if node.dialects and node.dialects[0] is fallback]
    promote_teams(nodes)
    _promote_callers(guessed)
    _leave_out_asked_calls(guessed)
    _leave_out_ambiguous_tools(guessed)
    _leave_out_steps_beside_calls(nodes, fallback)
    inside: dict[int, set[str]] = {}
    for node in nodes:
        if node.kind in ("model", "tool"):
            for above in node.ancestors():
                inside.setdefault(id(above), set()).add(node.kind)
                if above.kind == "tool":
                    break  # what a tool does is none of the calls that are summed up
    for node in nodes:
        is_sum = inside.get(id(node), set()) >= {"model", "tool"}
        if is_sum and node.kind == "model" and fallback in node.dialects:
            node.classified = node.kind = "chain"


def _promote_callers(guessed: Sequence[Node]) -> None:
    """Make the outermost span around a tool that calls an agent a run, if none is there: it is that
    of the agent that called the tool.
    """
    for node in guessed:
        if node.kind != "agent":
            continue
        above = list(node.ancestors())
        tools = [index for index, one in enumerate(above) if one.kind == "tool"]
        outer = above[tools[0] + 1 :] if tools else []
        own = [one for one in outer if one.span.scope.name == node.span.scope.name]
        if own and all(one.kind == "other" for one in outer):
            own[-1].classified = own[-1].kind = "chain"


def _leave_out_asked_calls(guessed: Sequence[Node]) -> None:
    """Leave out spans inside a model call that have no result, if another span of that tool began
    after it: the first one is what the model asked for.
    """
    last: dict[str | None, int] = {}
    for node in guessed:
        if node.kind == "tool" and not _is_in_model(node):
            last[node.name] = node.span.start_ns
    for node in guessed:
        if node.kind != "tool" or not _is_in_model(node):
            continue
        is_carried_out = last.get(node.name, 0) >= node.span.end_ns
        if is_carried_out and first([node.span], node.fields.result) is None:
            node.classified = node.kind = "other"


def _is_in_model(node: Node) -> bool:
    return node.parent is not None and node.parent.kind == "model"


def _leave_out_ambiguous_tools(guessed: Sequence[Node]) -> None:
    """Leave out spans of parallel calls of one tool that do not tell which call they are of. The
    messages tell what was called, and often with what result.
    """
    untold = [
        node
        for node in guessed
        if node.kind == "tool"
        and first([node.span], node.fields.call_id) is None
        and not isinstance(decoded(first([node.span], node.fields.arguments)), dict)
    ]
    last: dict[str | None, Node] = {}
    for node in untold:
        before = last.get(node.name)
        if before is not None and node.span.start_ns < before.span.end_ns:
            node.classified = before.classified = "other"
        last[node.name] = node
    for node in untold:
        node.kind = node.classified


def _leave_out_steps_beside_calls(nodes: Sequence[Node], fallback: Dialect) -> None:
    """Leave out steps with nothing inside them that are beside calls: what happened in them is
    there, and none of them is a run.
    """
    beside, around = set(), set()
    for node in nodes:
        around.add(id(node.parent))
        if node.kind in ("model", "tool"):
            beside.add(id(node.parent))
    beside.discard(id(None))
    for node in nodes:
        is_empty_step = node.kind == "chain" and id(node) not in around
        if is_empty_step and id(node.parent) in beside and fallback in node.dialects:
            node.classified = node.kind = "other"


def promote_teams(nodes: Sequence[Node], *, by_name: bool = False) -> None:
    """Make a span that was not read the run of a team, if it encloses several agents of its own
    instrumentation: those of different names, or any if it speaks of agents itself. Else they are
    turns of one agent. `by_name`: only spans that are called a workflow.
    """
    teams: dict[int, tuple[Node, list[str | None]]] = {}
    for node in nodes:
        if node.kind != "agent":
            continue
        for above in node.ancestors():
            if above.kind != "other":
                break
            if above.span.scope.name == node.span.scope.name:
                teams.setdefault(id(above), (above, []))[1].append(node.name)
    for team, names in teams.values():
        if by_name and _WORKFLOWS.isdisjoint(words(team.span.name)):
            continue
        speaks_of_agents = team.is_unknown and speaks(team.span)
        members = names if speaks_of_agents else set(names)
        if len(members) < 2 or None in names:
            continue
        if not team.span.serves_request:
            team.classified = team.kind = "chain"
