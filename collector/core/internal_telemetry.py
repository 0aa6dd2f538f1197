"""What pathgauge counts about itself: every span, trace and invocation that came, went on, or was
dropped, and why.

The core adds to these counters and never reads a clock; the Prometheus sink renders them at scrape
time. Label values come from closed sets in the code, never from spans. `received = went on +
dropped by reason` holds at every stage.

A durable ledger is shown in two steps: what was counted is `pending` for the store, and shown once
that has it (`commit`). A count that was shown and then lost in a crash would look like a restart
from 0, and be added to the sum once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """A series as it is stored."""

    key: Sequence[str]
    """Its name and the values of its labels."""
    state: Sequence[float] | None
    """Its numbers; `None`: the series is gone."""


class Counter:
    """A monotonic count by label values; `name` is exported as `pathgauge_<name>_total`."""

    __slots__ = ("_offered", "_shown", "_values", "documentation", "labels", "local", "name")

    def __init__(self, name: str, documentation: str, *labels: str, local: bool = False) -> None:
        """`local`: counted by other threads than the pipeline's, and from 0 in every process, even
        in a durable ledger.
        """
        self.name = name
        self.documentation = documentation
        self.labels = labels
        self.local = local
        self._values: dict[tuple[str, ...], int] = {} if labels else {(): 0}
        self._shown: dict[tuple[str, ...], int] | None = None
        """`None`: whatever is counted is shown."""
        self._offered: dict[tuple[str, ...], int] = {}

    def add(self, *values: str, n: int = 1) -> None:
        """Count `n` more under the label `values`, given in the order of `labels`."""
        self._values[values] = self._values.get(values, 0) + n

    def get(self, *values: str) -> int:
        """The count under these label values; 0 when nothing was counted."""
        return self._values.get(values, 0)

    def total(self) -> int:
        """The sum over all label values."""
        return sum(self._values.values())

    def items(self) -> list[tuple[tuple[str, ...], int]]:
        """A copy of the counts to show, safe to read from another thread. What is new begins at 0
        before it is settled.
        """
        counts = list(self._values.items())
        return (
            counts
            if self._shown is None
            else [(values, self._shown.get(values, 0)) for values, _ in counts]
        )

    def hold_back(self) -> None:
        """From now on show only what is settled."""
        self._shown = {}

    def pending(self) -> list[Row]:
        """What is counted and not settled."""
        shown = self._shown or {}
        self._offered = {
            values: count
            for values, count in list(self._values.items())
            if count != shown.get(values)
        }
        return [Row((self.name, *values), (count,)) for values, count in self._offered.items()]

    def commit(self) -> None:
        """Show what `pending` gave last."""
        if self._shown is not None:
            self._shown.update(self._offered)

    def restore(self, values: tuple[str, ...], count: int) -> None:
        """Begin at the count that an earlier process stored."""
        self._values[values] = count
        if self._shown is not None:
            self._shown[values] = count


class InternalTelemetry:
    """All counters of one collector process, one attribute each."""

    def __init__(self, durable: bool = False) -> None:
        """`durable`: all counters that are not local show what is settled; somebody must call
        `pending` and `commit`.
        """
        self.connections_refused = Counter(
            "connections_refused",
            "Connections closed before a request, by server and reason.",
            "server",
            "reason",
            local=True,
        )
        self.requests = Counter(
            "receiver_requests",
            "Export requests by answer.",
            "transport",
            "signal",
            "code",
            local=True,
        )
        self.accepted = Counter(
            "receiver_accepted_spans", "Spans acknowledged.", "transport", "format"
        )
        self.refused = Counter(
            "receiver_refused_spans",
            "Spans rejected for good, by reason.",
            "transport",
            "reason",
            local=True,
        )
        self.accepted_logs = Counter(
            "receiver_accepted_log_records", "Log records acknowledged.", "transport", "format"
        )
        self.refused_logs = Counter(
            "receiver_refused_log_records",
            "Log records rejected for good, by reason.",
            "transport",
            "reason",
            local=True,
        )
        self.redacted_values = Counter(
            "redacted_values",
            "Values redacted before anything is kept, by what found them.",
            "rule",
            "action",
            local=True,
        )
        self.spans_assembled = Counter("spans_assembled", "Spans that became part of a trace.")
        self.spans_dropped = Counter(
            "spans_dropped", "Acknowledged spans that became part of no trace, by reason.", "reason"
        )
        self.logs_assembled = Counter(
            "log_records_assembled", "Log records that became part of a trace."
        )
        self.logs_dropped = Counter(
            "log_records_dropped",
            "Acknowledged log records that became part of no trace, by reason.",
            "reason",
        )
        self.traces_opened = Counter(
            "traces_opened", "Traces of which a first span or log record arrived."
        )
        self.traces_spilled = Counter(
            "traces_spilled", "Waiting traces that were left to the journal for want of memory."
        )
        self.traces_completed = Counter(
            "traces_completed", "Traces read for the first time, by what completed them.", "reason"
        )
        self.traces_skipped = Counter(
            "traces_skipped", "Completed traces without an agent invocation, by reason.", "reason"
        )
        self.invocations_read = Counter(
            "invocations_read", "Agent invocations found in traces.", "dialect"
        )
        self.invocations_scored = Counter(
            "invocations_scored", "Invocations of which at least one criterion got a value."
        )
        self.invocations_skipped = Counter(
            "invocations_skipped",
            "Invocations of which no criterion got a value, by reason.",
            "reason",
        )
        self.invocations_unmatched = Counter(
            "invocations_unmatched", "Invocations without reference, by reason.", "reason"
        )
        self.invocation_flags = Counter(
            "invocation_flags", "Invocations whose telemetry lacks something.", "dialect", "flag"
        )
        self.revisions = Counter(
            "evaluation_revisions", "Evaluations replaced because late telemetry changed them."
        )
        self.withdrawn = Counter(
            "evaluations_withdrawn",
            "Evaluations taken back because a larger invocation appeared around them.",
        )
        self.case_turns = Counter(
            "case_turns", "Turns of finished conversations, by state.", "state"
        )
        self.events_exported = Counter(
            "events_exported", "Evaluation events that the backend took.", local=True
        )
        self.events_dropped = Counter(
            "events_dropped",
            "Evaluation events that no backend took, by reason.",
            "reason",
            local=True,
        )
        self.series_overflow = Counter(
            "series_overflow",
            "How often a label became __other__, by the limit that was reached.",
            "limit",
        )
        self._durable = {counter.name: counter for counter in self if durable and not counter.local}
        for counter in self._durable.values():
            counter.hold_back()

    def __iter__(self) -> Iterator[Counter]:
        """All counters, in the order of the pipeline."""
        return (value for value in vars(self).values() if isinstance(value, Counter))

    def pending(self) -> list[Row]:
        """Every durable count that is not settled, for the store. Asked again before `commit`, it
        gives all of them again.
        """
        return [row for counter in self._durable.values() for row in counter.pending()]

    def commit(self) -> None:
        """Show what `pending` gave last: it is stored."""
        for counter in self._durable.values():
            counter.commit()

    def restore(self, rows: Iterable[Row]) -> None:
        """Go on from what an earlier process stored. Rows of anything else than durable counters
        are passed over.
        """
        for key, state in rows:
            counter = self._durable.get(key[0])
            if counter is not None and len(key) == 1 + len(counter.labels) and state is not None:
                counter.restore(tuple(key[1:]), int(state[0]))
