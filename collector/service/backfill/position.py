"""How far a backfill has come. It is stored in the transaction of the results, so a slice is either
complete or not there at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.service.backfill.history import Found
from pathgauge.collector.service.backfill.slices import FIRST
from pathgauge.scorers.judges.model_client.budget import Spent

NAME = "backfill"
"""The name of its row among the counts."""


@dataclass(frozen=True, slots=True)
class Position:
    """Times in Unix nanoseconds."""

    source: str
    settings: str
    """Fingerprint of everything that decides scores and series."""
    since: int
    reached: int
    until: int
    file_size: int = 0
    """Bytes of the series file."""
    finished: bool = False
    traces: int = 0
    spans: int = 0
    rejected: int = 0
    slice_length: int = FIRST
    """That of the next slice."""
    spent: Spent = field(default_factory=dict)
    """By judges in the present hour and day."""

    def after(self, until: int, found: Found, slice_length: int) -> Position:
        """The position after a slice that ends at `until`; `slice_length` is that of the next."""
        return replace(
            self,
            reached=until,
            traces=self.traces + len(found.traces),
            spans=self.spans + sum(len(trace.spans) for trace in found.traces),
            rejected=self.rejected + found.rejected,
            slice_length=slice_length,
        )

    def row(self, size: int, spent: Spent) -> Row:
        """As it is stored, with the present size of the series file and what judges have spent."""
        return Row((NAME,), [asdict(replace(self, file_size=size, spent=spent))])


def stored(rows: Iterable[Row]) -> Position | None:
    """The position among the counts of a store; `None`: no backfill wrote it."""
    for key, state in rows:
        if tuple(key) == (NAME,) and state is not None:
            [fields] = state
            assert isinstance(fields, dict)
            return Position(**fields)
    return None
