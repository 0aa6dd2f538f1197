"""What the collector counts about itself: spans, traces and invocations that were received,
processed or dropped, and why.

At every stage, `received = processed + dropped by reason`. Label values come from closed sets in
the code, and from spans only for a `BoundedCounter`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pathgauge.collector.core.counters import BoundedCounter, Counter

MAX_UNREAD_SCOPES = 20
"""An installation has few frameworks that are not understood; senders can invent any number."""


class InternalTelemetry:
    """All counters of one collector process, one attribute each."""

    def __init__(self) -> None:
        self.connections_refused = Counter(
            "connections_refused",
            "Connections closed before a request, by server and reason.",
            "server",
            "reason",
            local=True,
        )
        self.invalid_http_requests = Counter(
            "invalid_http_requests",
            "Requests answered with 400 because they are not valid HTTP, by server and reason.",
            "server",
            "reason",
            local=True,
        )
        self.requests_without_memory = Counter(
            "requests_without_memory",
            "Export requests answered busy because the memory limit was near.",
            local=True,
        )
        self.requests = Counter(
            "receiver_requests",
            "Export requests, by answer.",
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
            "Spans permanently rejected, by reason.",
            "transport",
            "reason",
            local=True,
        )
        self.accepted_logs = Counter(
            "receiver_accepted_log_records", "Log records acknowledged.", "transport", "format"
        )
        self.refused_logs = Counter(
            "receiver_refused_log_records",
            "Log records permanently rejected, by reason.",
            "transport",
            "reason",
            local=True,
        )
        self.kafka_skipped = Counter(
            "kafka_records_skipped",
            "Records of Kafka that were not read, by reason.",
            "reason",
            local=True,
        )
        self.redacted_values = Counter(
            "redacted_values",
            "Values redacted before anything is stored, by rule and action.",
            "rule",
            "action",
            local=True,
        )
        self.spans_assembled = Counter("spans_assembled", "Spans that became part of a trace.")
        self.spans_dropped = Counter(
            "spans_dropped",
            "Acknowledged spans that did not become part of a trace, by reason.",
            "reason",
        )
        self.logs_assembled = Counter(
            "log_records_assembled", "Log records that became part of a trace."
        )
        self.logs_dropped = Counter(
            "log_records_dropped",
            "Acknowledged log records that did not become part of a trace, by reason.",
            "reason",
        )
        self.feedback_read = Counter(
            "feedback_read", "Answers of people that were read from telemetry, by source.", "source"
        )
        self.feedback_dropped = Counter(
            "feedback_dropped",
            "Evaluations in telemetry that are not used as answers of people, by reason.",
            "reason",
        )
        self.feedback_requests = Counter(
            "feedback_requests",
            "Answers of people that were posted, by source and by what became of them.",
            "source",
            "outcome",
            local=True,
        )
        self.traces_opened = Counter(
            "traces_opened", "Traces whose first span or log record arrived."
        )
        self.traces_spilled = Counter(
            "traces_spilled", "Open traces spilled to the journal because memory was used up."
        )
        self.traces_completed = Counter(
            "traces_completed",
            "Traces evaluated for the first time, by what completed them.",
            "reason",
        )
        self.traces_skipped = Counter(
            "traces_skipped", "Completed traces without an agent invocation, by reason.", "reason"
        )
        self.unread_scopes = BoundedCounter(
            "unread_scopes",
            "Spans that speak of agents, models or tools and that no dialect understands, by"
            " instrumentation scope.",
            "scope",
            max_values=MAX_UNREAD_SCOPES,
        )
        self.invocations_read = Counter(
            "invocations_read", "Agent invocations found in traces.", "dialect"
        )
        self.invocations_scored = Counter(
            "invocations_scored", "Invocations with a value for at least one criterion."
        )
        self.invocations_skipped = Counter(
            "invocations_skipped",
            "Invocations without a value for any criterion, by reason.",
            "reason",
        )
        self.invocations_unmatched = Counter(
            "invocations_unmatched", "Invocations without reference, by reason.", "reason"
        )
        self.invocation_flags = Counter(
            "invocation_flags",
            "Invocations with incomplete telemetry, by dialect and flag.",
            "dialect",
            "flag",
        )
        self.revisions = Counter(
            "evaluation_revisions",
            "Evaluations replaced because of late spans or late turns of a conversation.",
        )
        self.withdrawn = Counter(
            "evaluations_withdrawn",
            "Evaluations withdrawn because late spans belong to another or a larger invocation.",
        )
        self.case_turns = Counter(
            "case_turns", "Turns of finished conversations, by state.", "state"
        )
        self.sessions_ended = Counter(
            "sessions_ended", "Sessions that ended for the first time, by reason.", "reason"
        )
        self.session_revisions = Counter(
            "session_revisions",
            "Results of sessions replaced because of further turns, or changes of their turns.",
        )
        self.session_turns_dropped = Counter(
            "session_turns_dropped",
            "Turns that could not become part of their session, by reason.",
            "reason",
        )
        self.turns_dropped = Counter(
            "turns_dropped",
            "Turns of conversations that another scorer has forwarded and that cannot be read.",
        )
        self.shadow_evaluations = Counter(
            "shadow_evaluations", "Results of criteria in shadow, by verdict.", "metric", "verdict"
        )
        self.shadow_changes = Counter(
            "shadow_changes",
            "Results of criteria in shadow, by how their verdict differs from the active one.",
            "metric",
            "change",
        )
        self.shadow_errors = Counter(
            "shadow_errors",
            "Invocations that could not be scored in shadow, or whose judges there were changed"
            " before they answered.",
        )
        self.events_exported = Counter(
            "events_exported", "Evaluation events that the backend accepted.", local=True
        )
        self.events_dropped = Counter(
            "events_dropped",
            "Evaluation events that the backend did not accept, by reason.",
            "reason",
            local=True,
        )
        self.sink_failures = Counter(
            "sink_failures",
            "Calls of a sink that raised an exception, by sink. What they published is lost to it.",
            "sink",
            local=True,
        )
        self.series_overflow = Counter(
            "series_overflow",
            "Label values replaced by __other__, and what is not compared with its past for lack of"
            " room, by limit.",
            "limit",
        )

    def with_local_counters(self) -> InternalTelemetry:
        """Other counters that start at 0, but the same local ones."""
        other = InternalTelemetry()
        for name, counter in vars(self).items():
            if isinstance(counter, Counter) and counter.local:
                setattr(other, name, counter)
        return other

    def __iter__(self) -> Iterator[Counter]:
        """All counters, in the order of the pipeline."""
        return (value for value in vars(self).values() if isinstance(value, Counter))
