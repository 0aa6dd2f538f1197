"""What outlives the process: the journal of acknowledged requests, and the results with everything
that must agree with them.

A store takes a request in before its sender is answered, and takes the outcomes of the pipeline in
one transaction with the journal rows that they end. So a crash at any point loses nothing, and
counts nothing twice. Another database, or a distributed log, has to offer what `Store` says and
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.windows import Recent
from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.pipeline_events import Changes, Remembered, Told
from pathgauge.collector.core.traces import Recalled, TraceKey
from pathgauge.scorers.types import Invocation

State: TypeAlias = Literal["ok", "full", "failed"]
"""`full` and `failed` refuse requests."""

Transaction: TypeAlias = Literal["requests", "results", "quarantine"]
"""What was made durable: requests before they are acknowledged, what became of them, or that a row
is damaged.
"""

NEARLY_FULL = 0.9


class StoreError(OSError):
    """The store cannot be used; the message is for the operator."""


class StoreInUseError(StoreError):
    """Another process has the store."""


class Delivery(NamedTuple):
    """A request that is durable."""

    row: int
    """Its place in the journal; 0 where there is none."""
    at: float
    """When it arrived, in the collector's own time."""
    batch: Batch


Deliver: TypeAlias = Callable[[Delivery], bool]
"""Says whether the request was kept in memory; else it has to be read from the journal later."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the pipeline has done since the last time: one transaction."""

    row: int
    """Everything up to this journal row was taken in."""
    at: float
    """The collector's own time."""
    wall: float
    """Unix time."""
    outcomes: Sequence[Told] = ()
    changes: Changes = field(default_factory=Changes)
    counts: Sequence[Row] = ()


class Turn(NamedTuple):
    """An evaluated turn of a conversation that is not finished."""

    invocation: Invocation
    at: float
    beyond: int = 0
    """How many turns of the conversation were not kept, if this is the newest of them: of its
    invocation the ids alone are known.
    """


@dataclass(frozen=True, slots=True)
class Restored:
    """What the last process left."""

    row: int = 0
    """The last journal row that the pipeline took in."""
    last_row: int = 0
    """The last one there is."""
    requests: int = 0
    """How many rows the journal has."""
    at: float = 0.0
    """The collector's own time that was reached."""
    traces: Sequence[Remembered] = ()
    turns: Sequence[Turn] = ()
    counts: Sequence[Row] = ()
    awaited: Sequence[PendingJudgment] = ()
    """Evaluations that wait for judges, the oldest first."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a purge is to remove; exactly one of these."""

    trace_id: str | None = None
    """A trace, of whatever tenant."""
    scenario: str | None = None
    """The traces that have a result of this scenario."""
    before: float | None = None
    """What was stored before this Unix time, and the traces that had begun to arrive by then and
    still wait.
    """

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if [self.trace_id, self.scenario, self.before].count(None) != 2:
            raise ValueError(f"found {self}, expected exactly one of trace_id, scenario and before")


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge removed."""

    requests: int = 0
    """Journal rows that held something of it, and are gone or written anew without it."""
    results: int = 0
    damaged: int = 0
    """Damaged rows and files that may have held something of it."""
    unfinished: str | None = None
    """Why the files may still hold bytes of it, which another purge would remove."""
    traces: frozenset[TraceKey] = frozenset()
    """The traces of which something may still be known outside of the store."""
    evaluations: frozenset[EvaluationKey] = frozenset()
    """Those that windows may still hold."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How much a store holds. All sizes in bytes."""

    state: State = "ok"
    reason: str | None = None
    """Why it refuses, when that does not end by itself."""
    in_flight: int = 0
    """Requests that wait to become durable."""
    used: int = 0
    capacity: int = 0
    write_ahead: int = 0
    requests: int = 0
    """Journal rows."""
    quarantined: int = 0
    """Damaged rows that were set aside."""
    suspect: int = 0
    """Journal rows up to this one may be lost without anybody knowing of which traces."""

    @property
    def in_need(self) -> bool:
        """Whether a commit may help, though there is nothing to store: to find room, or that there
        is some again.
        """
        return self.nearly_full or self.state != "ok"

    @property
    def nearly_full(self) -> bool:
        """Whether something should be given back before requests are refused."""
        return self.used > self.capacity * NEARLY_FULL


class Store(Protocol):
    """`append` is for the event loop, everything else for the one thread that runs the pipeline,
    save `usage` and `horizon`.
    """

    durable: bool

    def open(self) -> Restored:
        """Read what the last process left. Raises `StoreError`."""
        ...

    def recent(self) -> Iterator[Recent]:
        """The evaluations that windows may hold, the last recorded first. To be read to its end
        between `open` and `start`.
        """
        ...

    def start(self, deliver: Deliver, now: Callable[[], float]) -> None:
        """Take requests; each is handed to `deliver`, in order, when it is durable."""
        ...

    async def append(self, batch: Batch) -> bool:
        """Make a request durable; `False` means no room now, retry later."""
        ...

    def read(self, after: int) -> Iterable[Delivery]:
        """Some of the requests behind row `after`, in order; none when there are no more. Each is
        decoded when it is its turn.
        """
        ...

    def recall(self, key: TraceKey, rows: Sequence[int]) -> Iterable[Recalled]:
        """The records of one trace, from rows of the journal; those that cannot be read are left
        out.
        """
        ...

    def commit(self, progress: Progress) -> bool:
        """Make progress durable; `False` when that cannot be done now: the same, or more, is
        offered again.
        """
        ...

    def purge(self, selection: Selection) -> Purged:
        """Remove for good, so that no byte of it stays. Raises `StoreError`, and then nothing was
        removed.
        """
        ...

    def horizon(self) -> float:
        """No request that is delivered from now on arrived earlier, in the collector's own time."""
        ...

    def usage(self) -> Usage:
        """How much it holds now."""
        ...

    def close(self) -> None:
        """Make durable what waits, and let go of the files. Safe to call twice."""
        ...
