"""Ancestors and descendants of the spans that have arrived, and which parents are still missing.

Every query costs at most one walk over the trace, whatever its shape. A cycle of parents ends where
it closes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from pathgauge.collector.core.otlp.spans import Span

MAX_ANCESTORS = 100
"""Bound on the spans above an invocation that are read with it. Thousands of invocations could be
below thousands of spans.
"""


def is_complete(spans: Mapping[str, Span]) -> bool:
    """Whether no parent is missing: every top-most span has no parent, or was called from another
    process.
    """
    tops = [span for span in spans.values() if span.parent_id not in spans]
    return bool(tops) and all(span.parent_id is None or span.remote_parent for span in tops)


def missing_parents(spans: Mapping[str, Span]) -> list[str]:
    """Ids of parents in the same process that have not arrived, in the order of their children."""
    parents = (span.parent_id for span in spans.values() if not span.remote_parent)
    missing = (parent for parent in parents if parent is not None and parent not in spans)
    return list(dict.fromkeys(missing))


class _PathUp(NamedTuple):
    """The path from a span to its top-most ancestor."""

    top: Span
    has_entry_agent: bool
    """Whether a possible entry agent lies above the span."""


class Ancestry:
    """Ancestors and descendants of spans. `entry_agents` are the ids of possible entry agents."""

    def __init__(self, spans: Mapping[str, Span], entry_agents: Collection[str]) -> None:
        self._spans = spans
        self._entry_agents = set(entry_agents)
        self._paths: dict[str, _PathUp] = {}
        self._latest_of_series: dict[str | None, int | None] = {}
        """The latest start of an entry agent below each parent; `None` if their names differ."""
        self._children: dict[str | None, list[Span]] = defaultdict(list)
        orphans = (one for one in spans.values() if one.is_orphan(spans))
        times = sorted(
            (one.start_ns, one.end_ns) for one in orphans if one.span_id not in self._entry_agents
        )
        self._orphan_starts = [start for start, _ in times]
        ends = accumulate((end for _, end in reversed(times)), min)
        self._first_ends = [*ends][::-1]
        """The first end among this orphan and those that started later."""
        for span in spans.values():
            self._children[span.parent_id].append(span)

    def known_tops(self) -> Iterator[Span]:
        """Entry agents that no span can still enclose.

        That is certain if the top-most ancestor has no parent. If its parent has not arrived, a
        later entry agent of the same name shows that the parent is a session or a batch; entry
        agents of different names may be the steps of one workflow.
        """
        for entry_id in sorted(self._entry_agents):
            entry_agent = self._spans[entry_id]
            path = self._path_up(entry_agent)
            if path.has_entry_agent:
                continue
            if path.top.parent_id is None or self._is_one_of_a_series(entry_agent):
                yield entry_agent

    def may_lack_spans(self, entry_agent: Span) -> bool:
        """Whether a span that ran during an entry agent has a parent, of the same process, that has
        not arrived: it may belong to the agent.
        """
        place = bisect_left(self._orphan_starts, entry_agent.start_ns)
        return place < len(self._first_ends) and self._first_ends[place] <= entry_agent.end_ns

    def above(self, span: Span) -> list[Span]:
        """The known ancestors, nearest first, at most `MAX_ANCESTORS`."""
        found: dict[str, Span] = {}
        parent = self._spans.get(span.parent_id or "")
        while parent is not None and parent.span_id not in found and parent is not span:
            if len(found) == MAX_ANCESTORS:
                break
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

    def _path_up(self, span: Span) -> _PathUp:
        """The path from `span`. Paths are cached, so that each span is visited once."""
        unknown: dict[str, Span] = {}
        current: Span | None = span
        while (
            current is not None
            and current.span_id not in unknown
            and current.span_id not in self._paths
        ):
            unknown[current.span_id] = current
            current = self._spans.get(current.parent_id or "")
        for span_id, visited in reversed(unknown.items()):
            parent = self._spans.get(visited.parent_id or "")
            above = self._paths.get(parent.span_id) if parent else None
            if parent is None or above is None:
                self._paths[span_id] = _PathUp(visited, False)
            else:
                has_entry_agent = above.has_entry_agent or parent.span_id in self._entry_agents
                self._paths[span_id] = _PathUp(above.top, has_entry_agent)
        return self._paths[span.span_id]

    def _is_one_of_a_series(self, entry_agent: Span) -> bool:
        parent_id = entry_agent.parent_id
        if parent_id not in self._latest_of_series:
            children = self._children[parent_id]
            siblings = [span for span in children if span.span_id in self._entry_agents]
            same_name = all(span.name == entry_agent.name for span in siblings)
            latest = max(span.start_ns for span in siblings)
            self._latest_of_series[parent_id] = latest if same_name else None
        latest_start = self._latest_of_series[parent_id]
        return latest_start is not None and latest_start >= entry_agent.end_ns
