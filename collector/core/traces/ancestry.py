"""Who is above and below whom among the spans of a trace that have arrived, and what may still come
above them.

Every question costs at most one walk over the trace, whatever its shape; cycles of parents end
where they close.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from pathgauge.collector.core.otlp.spans import Span


def is_complete(spans: Mapping[str, Span]) -> bool:
    """Whether nothing is missing above: every known part begins with a span without parent, or was
    entered from another process.
    """
    tops = [span for span in spans.values() if span.parent_id not in spans]
    return bool(tops) and all(span.parent_id is None or span.remote_parent for span in tops)


def missing_parents(spans: Mapping[str, Span]) -> list[str]:
    """The ids of spans of the same process that others call their parent and that have not arrived,
    as they were missed first.
    """
    missed = (span.parent_id for span in spans.values() if not span.remote_parent)
    return list(
        dict.fromkeys(parent for parent in missed if parent is not None and parent not in spans)
    )


class _Way(NamedTuple):
    """The way up from a span: where it ends, and whether it passes an anchor."""

    top: Span
    has_entry_agent: bool


class Ancestry:
    """The family relations of `spans`, of which `entry_agents` may be the top-most ones of invocations."""

    def __init__(self, spans: Mapping[str, Span], entry_agents: Collection[str]) -> None:
        self._spans = spans
        self._entry_agents = set(entry_agents)
        self._ways: dict[str, _Way] = {}
        self._series: dict[str | None, int | None] = {}
        """The start of the latest anchor below a parent, where all its anchors bear one name."""
        self._children: dict[str | None, list[Span]] = defaultdict(list)
        for span in spans.values():
            self._children[span.parent_id].append(span)

    def known_tops(self) -> Iterator[Span]:
        """The anchors above which no other anchor can still come.

        None can when the way up ends at a root. Under a parent that has not arrived yet, a later
        anchor of the same name tells that the parent is a session or a batch; anchors of different
        names may be the steps of one workflow.
        """
        for entry_id in sorted(self._entry_agents):
            entry_agent = self._spans[entry_id]
            way = self._way(entry_agent)
            if not way.has_entry_agent and (
                way.top.parent_id is None or self._is_one_of_a_series(entry_agent)
            ):
                yield entry_agent

    def above(self, span: Span) -> list[Span]:
        """The known ancestors, nearest first."""
        found: dict[str, Span] = {}
        parent = self._spans.get(span.parent_id or "")
        while parent is not None and parent.span_id not in found and parent is not span:
            found[parent.span_id] = parent
            parent = self._spans.get(parent.parent_id or "")
        return list(found.values())

    def below(self, span: Span) -> list[Span]:
        """The span and everything known below it."""
        found = {span.span_id: span}
        waiting = [span]
        while waiting:
            for child in self._children.get(waiting.pop().span_id, ()):
                if child.span_id not in found:
                    found[child.span_id] = child
                    waiting.append(child)
        return list(found.values())

    def _way(self, span: Span) -> _Way:
        path: dict[str, Span] = {}
        at: Span | None = span
        while at is not None and at.span_id not in path and at.span_id not in self._ways:
            path[at.span_id] = at
            at = self._spans.get(at.parent_id or "")
        for span_id, passed in reversed(path.items()):
            parent = self._spans.get(passed.parent_id or "")
            way = self._ways.get(parent.span_id) if parent else None
            if parent is None or way is None:
                self._ways[span_id] = _Way(passed, False)
            else:
                self._ways[span_id] = _Way(
                    way.top, way.has_entry_agent or parent.span_id in self._entry_agents
                )
        return self._ways[span.span_id]

    def _is_one_of_a_series(self, entry_agent: Span) -> bool:
        if entry_agent.parent_id not in self._series:
            siblings = [
                span
                for span in self._children[entry_agent.parent_id]
                if span.span_id in self._entry_agents
            ]
            same_name = all(span.name == entry_agent.name for span in siblings)
            self._series[entry_agent.parent_id] = (
                max(span.start_ns for span in siblings) if same_name else None
            )
        latest_start = self._series[entry_agent.parent_id]
        return latest_start is not None and latest_start >= entry_agent.end_ns
