"""What pathgauge counts about itself: every span, trace and invocation that came, went on, or was dropped, and why.

The core adds to these counters and never reads a clock; the Prometheus sink renders them at scrape time. Label values
come from closed sets in the code, never from spans. `received = went on + dropped by reason` holds at every stage.
"""

from __future__ import annotations

from collections.abc import Iterator


class Counter:
    """A monotonic count by label values; `name` is exported as `pathgauge_<name>_total`."""

    __slots__ = ("_values", "documentation", "labels", "name")

    def __init__(self, name: str, documentation: str, *labels: str) -> None:
        self.name = name
        self.documentation = documentation
        self.labels = labels
        self._values: dict[tuple[str, ...], int] = {} if labels else {(): 0}

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
        """A copy of the counts, safe to read from another thread."""
        return list(self._values.items())


class Ledger:
    """All counters of one collector process, one attribute each."""

    def __init__(self) -> None:
        self.requests = Counter("receiver_requests", "Export requests by answer.", "transport", "signal", "code")
        self.accepted = Counter("receiver_accepted_spans", "Spans acknowledged.", "transport", "format")
        self.refused = Counter("receiver_refused_spans", "Spans rejected for good, by reason.", "transport", "reason")
        self.accepted_logs = Counter("receiver_accepted_log_records", "Log records acknowledged.", "transport", "format")
        self.refused_logs = Counter("receiver_refused_log_records", "Log records rejected for good, by reason.", "transport", "reason")
        self.spans_assembled = Counter("spans_assembled", "Spans that became part of a trace.")
        self.spans_dropped = Counter("spans_dropped", "Acknowledged spans that became part of no trace, by reason.", "reason")
        self.logs_assembled = Counter("log_records_assembled", "Log records that became part of a trace.")
        self.logs_dropped = Counter("log_records_dropped", "Acknowledged log records that became part of no trace, by reason.", "reason")
        self.traces_opened = Counter("traces_opened", "Traces of which a first span or log record arrived.")
        self.traces_completed = Counter("traces_completed", "Traces read for the first time, by what completed them.", "reason")
        self.traces_skipped = Counter("traces_skipped", "Completed traces without an agent invocation, by reason.", "reason")
        self.invocations_read = Counter("invocations_read", "Agent invocations found in traces.", "dialect")
        self.invocations_scored = Counter("invocations_scored", "Invocations of which at least one criterion got a value.")
        self.invocations_skipped = Counter("invocations_skipped", "Invocations of which no criterion got a value, by reason.", "reason")
        self.invocations_unmatched = Counter("invocations_unmatched", "Invocations without reference, by reason.", "reason")
        self.invocation_flags = Counter("invocation_flags", "Invocations whose telemetry lacks something.", "dialect", "flag")
        self.revisions = Counter("evaluation_revisions", "Evaluations replaced because late telemetry changed them.")
        self.withdrawn = Counter("evaluations_withdrawn", "Evaluations taken back because a larger invocation appeared around them.")
        self.case_turns = Counter("case_turns", "Turns of finished conversations, by state.", "state")

    def __iter__(self) -> Iterator[Counter]:
        """All counters, in the order of the pipeline."""
        return iter(vars(self).values())
