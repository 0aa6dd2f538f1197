"""Makes one call of two model spans side by side, from two instrumentations of one client.

The Anthropic SDK traces itself, without content; an instrumentation of it has the content. Their
spans are siblings, so that tokens would count twice, and the one without content would seem to have
given no answer.

Siblings of different instrumentations are one call if they have the same response id. Without an
id, they are one call if one ran during the other and during no other, unless both state how many
tokens were generated and these differ.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.messages.values import as_id, as_int
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.tree import Tree

MAX_CONCURRENT = 32
"""Bound on the earlier siblings that a span is compared with."""


def join_model_calls(tree: Tree) -> None:
    """Turn the inner of two spans into a part of the outer one."""
    siblings: dict[str, list[Node]] = defaultdict(list)
    for node in tree.nodes:
        if node.kind == "model" and node.span.parent_id is not None:
            siblings[node.span.parent_id].append(node)
    for nodes in siblings.values():
        if len({node.span.scope.name for node in nodes}) > 1:
            _join(list(_pairs(nodes)))


def _join(pairs: list[tuple[Node, Node, bool]]) -> None:
    taken = Counter(id(outer) for outer, _, _ in pairs)
    for outer, inner, is_certain in pairs:
        if is_certain or taken[id(outer)] == 1:
            outer.describe_also(inner.spans, inner.dialects)
            inner.kind = "other"


def _pairs(nodes: Iterable[Node]) -> Iterator[tuple[Node, Node, bool]]:
    """An outer and an inner span, and whether both have the same response id. `nodes` are by start,
    the enclosing one first.
    """
    running: list[Node] = []
    for node in nodes:
        span = node.span
        running = [one for one in running if one.span.end_ns > span.start_ns][-MAX_CONCURRENT:]
        others = [one for one in running if one.span.scope.name != span.scope.name]
        same = [
            one for one in others if _response_id(one) and _response_id(one) == _response_id(node)
        ]
        around = [one for one in others if one.span.end_ns >= span.end_ns and _may_be(one, node)]
        if same:
            yield same[0], node, True
        elif len(around) == 1:
            yield around[0], node, False
        else:
            running.append(node)


def _may_be(outer: Node, inner: Node) -> bool:
    ids = {_response_id(outer), _response_id(inner)}
    tokens = {_output_tokens(outer), _output_tokens(inner)}
    return len(ids - {None}) < 2 and len(tokens - {None}) < 2


def _response_id(node: Node) -> str | None:
    return as_id(first(node.spans, node.fields.response_id))


def _output_tokens(node: Node) -> int | None:
    return as_int(first(node.spans, node.fields.output_tokens))
