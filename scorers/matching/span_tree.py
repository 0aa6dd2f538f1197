"""The tree of the spans of an invocation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from pathgauge.scorers.authoring.extras import SpanRecord


@dataclass(frozen=True, slots=True)
class SpanTree:
    """Spans with the positions of their parents and children in `spans`."""

    spans: Sequence[SpanRecord]
    parents: Sequence[int | None]
    """`None` for the spans that have no parent among the spans."""
    children: Sequence[Sequence[int]]
    downwards: Sequence[int]
    """All positions, each parent before its children."""

    @classmethod
    def of(cls, spans: Sequence[SpanRecord]) -> SpanTree:
        """Link the spans. A cycle is cut at its first span."""
        positions = {span.span_id: at for at, span in enumerate(spans)}
        parents = [positions.get(span.parent_id or "") for span in spans]
        children: list[list[int]] = [[] for _ in spans]
        for at, parent in enumerate(parents):
            if parent is not None:
                children[parent].append(at)
        downwards: dict[int, None] = {}
        roots = [at for at, parent in enumerate(parents) if parent is None]
        for root in (*roots, *range(len(spans))):
            if root not in downwards:
                if (parent := parents[root]) is not None:
                    children[parent].remove(root)
                    parents[root] = None
                downwards.update(dict.fromkeys(_below(root, children)))
        return cls(spans, parents, children, tuple(downwards))


def below(spans: Sequence[SpanRecord], roots: Set[str]) -> tuple[SpanRecord, ...]:
    """The spans with the ids `roots`, and all spans below them."""
    inside = _inside(spans, roots)
    return tuple(span for span, is_inside in zip(spans, inside, strict=True) if is_inside)


def without(spans: Sequence[SpanRecord], roots: Set[str]) -> tuple[SpanRecord, ...]:
    """The spans that are not with `below`."""
    inside = _inside(spans, roots)
    return tuple(span for span, is_inside in zip(spans, inside, strict=True) if not is_inside)


def _inside(spans: Sequence[SpanRecord], roots: Set[str]) -> list[bool]:
    tree = SpanTree.of(spans)
    inside = [span.span_id in roots for span in spans]
    for at in tree.downwards:
        parent = tree.parents[at]
        inside[at] = inside[at] or (parent is not None and inside[parent])
    return inside


def _below(root: int, children: Sequence[Sequence[int]]) -> Iterator[int]:
    pending = [root]
    while pending:
        at = pending.pop()
        yield at
        pending.extend(reversed(children[at]))
