"""The store keeps what outlives the process: the journal of acknowledged requests, and the results
with everything that must agree with them.

A request is stored before its sender is answered. Results are stored in one transaction with the
removal of the journal rows that are no longer needed. So a crash at any point loses nothing, and
counts nothing twice. `Store` is all that another database or a distributed log would have to
implement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, fields
from typing import Literal, NamedTuple, Protocol, TypeAlias

from pathgauge.collector.core.documents import SettingError
from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.recent import Recent, Wants
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.pipeline_events import Changes, PublishedEvent, StoredTrace
from pathgauge.collector.core.sessions.stored_session import StoredSession
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traces import Recalled, TraceKey

State: TypeAlias = Literal["ok", "full", "failed"]
"""`full` and `failed` refuse requests."""

Removal: TypeAlias = Literal["age", "space"]
"""Why results are removed: they are older than the retention, or take space that requests need."""

Part: TypeAlias = Literal["whole", "scorer", "gauge"]
"""What a store is for: a scorer writes journal, state and publications, a gauge results and counts.
`whole`: both are one process, which needs no publications.
"""


class Unread(NamedTuple):
    """Publications that wait for the gauge."""

    number: int = 0
    oldest_at: float | None = None
    """Since when the oldest of them waits, in Unix seconds; `None` without any."""


FeedbackOutcome: TypeAlias = Literal[
    "created", "replaced", "outdated", "repeated", "conflict", "purged"
]
"""What became of an answer: `outdated`, a newer one of the same person is known; `repeated`, it was
sent before; `conflict`, another answer has its id; `purged`, its trace was purged.
"""

Transaction: TypeAlias = Literal["requests", "results", "quarantine", "feedback"]
"""The kinds of transactions: requests before they are acknowledged, results of the pipeline, the
quarantine of a damaged row, and feedback that was posted.
"""

NEARLY_FULL = 0.9
KEPT_SHARE = 0.5
"""The share of the store that everything but requests may use. So requests always have the rest."""


class StoreError(OSError):
    """The store cannot be used; the message is for the operator."""


class StoreFolderError(SettingError, StoreError):
    """The folder of the store cannot be used."""

    def __init__(self, text: str) -> None:
        super().__init__(("store", "path"), text)


class StoreInUseError(StoreFolderError):
    """Another process uses the store."""


class Delivery(NamedTuple):
    """A durable request."""

    row: int
    """Its row in the journal; 0 without a journal."""
    at: float
    """When it arrived, in running time."""
    batch: Batch


Deliver: TypeAlias = Callable[[Delivery], bool]
"""Returns whether the request is queued in memory; else it has to be read from the journal later.
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the pipeline has done since the last commit: one transaction."""

    row: int
    """The last journal row that was processed."""
    at: float
    """The running time."""
    wall: float
    """Unix time."""
    outcomes: Sequence[PublishedEvent] = ()
    changes: Changes = field(default_factory=Changes)
    counts: Sequence[Row] = ()
    evidence: Mapping[int, bytes] | None = None
    """Evidence that another process has built, by the index of its outcome; `None`: it is built
    from the outcomes.
    """
    publication: bytes | None = None
    """What a scorer tells the gauge, if that is another process."""
    published: Mapping[str, int] = field(default_factory=dict)
    """The last publication of each scorer that the gauge has read."""
    times: Sequence[float] = ()
    """When each outcome happened, in Unix seconds, if that was not at `wall`."""

    def at_of(self, index: int) -> float:
        """When an outcome happened, in Unix seconds."""
        return self.times[index] if self.times else self.wall


@dataclass(frozen=True, slots=True)
class Restored:
    """What the last process left."""

    row: int = 0
    """The last journal row that was processed."""
    last_row: int = 0
    """The last journal row."""
    requests: int = 0
    """The number of journal rows."""
    at: float = 0.0
    """The running time that the last process reached."""
    traces: Sequence[StoredTrace] = ()
    turns: Sequence[StoredTurn] = ()
    sessions: Sequence[StoredSession] = ()
    """The one that changed longest ago comes first."""
    counts: Sequence[Row] = ()
    pending: Sequence[PendingJudgment] = ()
    """Evaluations that wait for judges, the oldest first."""
    request_bytes: int = 0
    """The space that the journal rows take."""
    published: Mapping[str, int] = field(default_factory=dict)
    """The last publication of each scorer that the gauge has read."""
    received: Mapping[str, int] = field(default_factory=dict)
    """The last turn that each other scorer has forwarded to this one."""
    is_purging: bool = False
    """Whether a purge was interrupted."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a purge removes; exactly one field is set."""

    trace_id: str | None = None
    """A trace, of any tenant."""
    scenario: str | None = None
    """The traces with a result of this scenario."""
    before: float | None = None
    """What was stored before this Unix time, and open traces that had begun to arrive by then."""
    tenant: str | None = None
    """All that was stored of this tenant."""

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if list(asdict(self).values()).count(None) != len(fields(self)) - 1:
            names = ", ".join(field.name for field in fields(self))
            raise ValueError(f"found {self}, expected exactly one of {names}")


MAX_FINISHED = 10_000
"""A purge may remove millions of traces of which only results are left. Who remembers all of them
has to forget others.
"""


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge removed."""

    requests: int = 0
    """Journal rows that held purged data; they were removed, or rewritten without it."""
    results: int = 0
    damaged: int = 0
    """Damaged rows and files, which are removed because they might hold purged data."""
    unfinished: str | None = None
    """Why the files may still hold bytes of it; another purge would remove them."""
    traces: frozenset[TraceKey] = frozenset()
    """Traces of which nothing more is taken: all that the pipeline may still hold, and up to
    `MAX_FINISHED` others.
    """
    evaluations: frozenset[EvaluationKey] = frozenset()
    """Evaluations that sinks may still hold."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How much a store holds. All sizes in bytes."""

    state: State = "ok"
    reason: str | None = None
    """Why it refuses requests, if the state alone does not say it."""
    in_flight: int = 0
    """Size of the requests that wait to become durable."""
    used: int = 0
    capacity: int = 0
    kept: int = 0
    """What is used by everything but requests: results, trace states, turns of open conversations.
    """
    results_removed: Mapping[Removal, int] = field(default_factory=dict)
    """Results that this process has removed."""
    feedback_removed: Mapping[Removal, int] = field(default_factory=dict)
    """Answers of people that this process has removed."""
    write_ahead: int = 0
    requests: int = 0
    """Journal rows."""
    quarantined: int = 0
    """Damaged rows that were moved to the quarantine."""
    suspect: int = 0
    """Journal rows up to this one may be lost, and it is unknown which traces they belonged to."""

    @property
    def needs_commit(self) -> bool:
        """Whether a commit without any result may help: it triggers retention, and shows whether
        the disk can be written to again.
        """
        return self.nearly_full or self.excess > 0 or self.state != "ok"

    @property
    def excess(self) -> int:
        """By how much too much is kept."""
        return max(0, self.kept - int(self.capacity * KEPT_SHARE))

    @property
    def nearly_full(self) -> bool:
        """Whether space should be freed before requests have to be refused."""
        return self.used > self.capacity * NEARLY_FULL


class Store(Protocol):
    """`append` is called by the event loop, `usage` and `horizon` by any thread, everything else by
    the pipeline thread.
    """

    durable: bool

    def open(self) -> Restored:
        """Read what the last process left. Raises `StoreError`."""
        ...

    def recent(self, wants: Wants) -> Iterator[Recent]:
        """The evaluations that windows may hold, newest first. To be read to its end, between
        `open` and `start`.
        """
        ...

    def start(self, deliver: Deliver, now: Callable[[], float]) -> None:
        """Accept requests. Each is passed to `deliver`, in order, when it is durable."""
        ...

    async def append(self, batch: Batch) -> bool:
        """Make a request durable; `False` means that the sender should retry later."""
        ...

    def read(self, after: int) -> Iterable[Delivery]:
        """Some of the requests after row `after`, in order; none at the end of the journal. Each is
        decoded when the caller reaches it.
        """
        ...

    def recall(self, key: TraceKey, rows: Sequence[int]) -> Iterable[Recalled]:
        """The records of one trace from these journal rows, without unreadable ones."""
        ...

    def commit(self, progress: Progress) -> bool:
        """Make progress durable. After `False` the caller tries again with the same progress, or
        with more.
        """
        ...

    def purge(self, selection: Selection, traces: Set[TraceKey] = frozenset()) -> Purged:
        """Remove data, also that of these `traces`, so that no byte of it stays. Requests are
        accepted meanwhile. No feedback about a purged trace is recorded until a restart. Raises
        `StoreError` if nothing was removed.
        """
        ...

    def finish_purge(self) -> Purged:
        """Finish a purge that was interrupted. Raises `StoreError`."""
        ...

    def horizon(self) -> float:
        """The lower bound for the arrival of requests still to be delivered, in running time."""
        ...

    def usage(self) -> Usage:
        """How much the store holds now."""
        ...

    def close(self) -> None:
        """Make waiting requests durable, and close the files. Safe to call twice."""
        ...
