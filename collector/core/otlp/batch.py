"""What every receiver hands on: an export request with its valid records, and the question whether
there is room for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import Encoding, Signal
from pathgauge.collector.core.otlp.spans import LogRecord, Span

Transport: TypeAlias = Literal["grpc", "http"]


class Origin(NamedTuple):
    """Who sent a request, and how; enough to decode its body again."""

    tenant: str
    transport: Transport
    signal: Signal
    encoding: Encoding


@dataclass(frozen=True, slots=True)
class Batch:
    """One export request that is going to be acknowledged."""

    origin: Origin
    body: bytes
    """Decodes to the records below. It is what may be stored: nothing that must not be is in it."""
    spans: tuple[Span, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    without_trace: int = 0
    """Log records that name no trace: valid, and of no use here."""
    own_events: int = 0
    """Evaluations that pathgauge itself exported, and that came back."""
    sent_as: Encoding | None = None
    """The encoding that the sender chose, where the body is not the one it sent."""

    def count(self, telemetry: InternalTelemetry) -> None:
        """Count the records as accepted."""
        transport, encoding = self.origin.transport, self.sent_as or self.origin.encoding
        if self.origin.signal == "traces":
            telemetry.accepted.add(transport, encoding, n=len(self.spans))
        else:
            telemetry.accepted_logs.add(
                transport, encoding, n=len(self.logs) + self.without_trace + self.own_events
            )
            telemetry.logs_dropped.add("no_trace_id", n=self.without_trace)
            if self.own_events:
                telemetry.logs_dropped.add("own_event", n=self.own_events)


Consumer: TypeAlias = Callable[[Batch], Awaitable[bool]]
"""Takes responsibility for a batch before the sender is answered; `False` means no room now, retry
later.
"""
