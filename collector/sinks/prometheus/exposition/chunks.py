"""The series of a metric family in chunks, whose text is written again only after a change.

A scrape and the thread that counts share the chunks. A scrape marks all of them as read, under the
lock of the counting thread, and that takes no longer than a look at each chunk. Whoever changes a
chunk that was read copies it first. So a scrape shows all families as they were at one moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Generic, TypeVar

from pathgauge.collector.sinks.prometheus.exposition.blocks import Block

K = TypeVar("K", bound=tuple[str, ...])
V = TypeVar("V")

MAX_LINES = 150
"""Lines of text in a full chunk. Longer chunks compress better; in shorter ones, a change writes
fewer other series again.
"""


class Content(Generic[K, V]):
    """The series of a chunk. Once they were read from a chunk they do not change any more."""

    __slots__ = ("blocks", "series", "was_read")

    def __init__(self, series: dict[K, V]) -> None:
        self.series = series
        self.was_read = False
        self.blocks: dict[str, Block] = {}
        """What was written of it, by format."""


class _Chunk(Generic[K, V]):
    """A few groups of series."""

    __slots__ = ("content", "groups")

    def __init__(self) -> None:
        self.content: Content[K, V] = Content({})
        self.groups: dict[tuple[str, ...], int] = {}
        """The number of series of each group."""

    def to_change(self) -> dict[K, V]:
        """The series, for the caller to change."""
        if self.content.was_read:
            self.content = Content(self.content.series.copy())
        return self.content.series


class Chunks(Generic[K, V]):
    """All series of a family. Not thread-safe; contents that were read are."""

    def __init__(self, group: int, lines: int) -> None:
        """Series that share the first `group` labels change together, so they share a chunk. Each
        series takes so many `lines`.
        """
        self._group = group
        self._capacity = max(1, MAX_LINES // lines)
        self._of_group: dict[tuple[str, ...], _Chunk[K, V]] = {}
        self._chunks: dict[_Chunk[K, V], None] = {}
        self._open: _Chunk[K, V] | None = None
        """The chunk that takes the next new group."""

    def get(self, labels: K) -> V | None:
        """The value of a series, if there is one."""
        chunk = self._of_group.get(labels[: self._group])
        return None if chunk is None else chunk.content.series.get(labels)

    def put(self, labels: K, value: V) -> None:
        """Add a series, or replace its value."""
        group = labels[: self._group]
        chunk = self._of_group.get(group)
        if chunk is None:
            chunk = self._of_group[group] = self._with_room()
        series = chunk.to_change()
        if labels not in series:
            chunk.groups[group] = chunk.groups.get(group, 0) + 1
        series[labels] = value

    def discard(self, labels: K) -> None:
        """Remove a series if there is one."""
        group = labels[: self._group]
        chunk = self._of_group.get(group)
        if chunk is None or labels not in chunk.content.series:
            return
        del chunk.to_change()[labels]
        chunk.groups[group] -= 1
        if not chunk.groups[group]:
            del chunk.groups[group], self._of_group[group]
        if not chunk.groups:
            del self._chunks[chunk]
            if chunk is self._open:
                self._open = None

    def outside(self, wanted: Collection[tuple[str, ...]], length: int) -> list[K]:
        """The series whose first `length` labels, of those of their group, are not `wanted`."""
        unwanted = {group for group in self._of_group if group[:length] not in wanted}
        chunks = dict.fromkeys(self._of_group[group] for group in unwanted)
        return [
            labels
            for chunk in chunks
            for labels in chunk.content.series
            if labels[: self._group] in unwanted
        ]

    def read(self) -> Published[K, V]:
        """All series at this moment."""
        contents = [chunk.content for chunk in self._chunks]
        for content in contents:
            content.was_read = True
        return Published(contents)

    def _with_room(self) -> _Chunk[K, V]:
        chunk = self._open
        if chunk is None or len(chunk.content.series) >= self._capacity:
            chunk = self._open = _Chunk()
            self._chunks[chunk] = None
        return chunk


class Published(Mapping[K, V]):
    """The series of a family at one moment."""

    def __init__(self, contents: list[Content[K, V]]) -> None:
        self.contents = contents

    def together(self) -> dict[K, V]:
        """A copy, in which a series is found at once."""
        found: dict[K, V] = {}
        for content in self.contents:
            found.update(content.series)
        return found

    def __getitem__(self, labels: K) -> V:
        for content in self.contents:
            if labels in content.series:
                return content.series[labels]
        raise KeyError(labels)

    def __iter__(self) -> Iterator[K]:
        for content in self.contents:
            yield from content.series

    def __len__(self) -> int:
        return sum(len(content.series) for content in self.contents)
