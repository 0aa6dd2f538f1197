"""What a scorer passes to the database of its partition, and what it gets from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store import Progress
from pathgauge.collector.store.postgres.heads import Head
from pathgauge.collector.store.postgres.messages import Forwarded, Purge


@dataclass(frozen=True, slots=True)
class Step:
    """One commit of a scorer."""

    progress: Progress
    """Its `publication` is written; its `counts` are those that belong to the partition."""
    offsets: Mapping[str, int]
    """The offset in each topic of the first request that was not processed."""
    heads: Sequence[Head] = ()
    """The requests that were processed since the last commit."""
    records: Sequence[Row] = ()
    """What was learnt of agent versions."""
    consumed: Sequence[int] = ()
    """Forwarded turns that were processed."""


@dataclass(frozen=True, slots=True)
class News:
    """What others have left for a partition."""

    forwarded: Sequence[Forwarded] = ()
    """Turns that were not returned before."""
    purges: Sequence[Purge] = ()
    """To be applied before the next commit, which is refused otherwise."""
    reached: float | None = None
    """No turn that other partitions forward later is read before this time. `None` if that is
    unknown, because others that were forwarded wait.
    """
