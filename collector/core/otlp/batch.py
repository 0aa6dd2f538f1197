"""A decoded export request, as every receiver passes it to the service, or a turn that another
scorer has forwarded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import Encoding, Signal
from pathgauge.collector.core.otlp.spans import LogRecord, Span

if TYPE_CHECKING:
    from pathgauge.collector.core.pipeline_events import ForwardedTurn

Transport: TypeAlias = Literal["grpc", "http", "kafka"]
"""`kafka`: written to a topic by another program, such as the OpenTelemetry Collector."""


class Origin(NamedTuple):
    """The sender and encoding of a request: enough to decode its body again."""

    tenant: str
    transport: Transport
    signal: Signal
    encoding: Encoding


class Relayed(NamedTuple):
    """Where a turn comes from. It is stored once, however often it is sent."""

    scorer: str
    row: int
    """Turns of one scorer have growing numbers."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One export request that will be acknowledged, or one forwarded turn."""

    origin: Origin
    body: bytes
    """The redacted request, which may be stored. It decodes to the records below."""
    spans: tuple[Span, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    without_trace: int = 0
    """Number of valid log records without a trace id, which are not used."""
    own_events: int = 0
    """Number of evaluation events that pathgauge exported and received back."""
    sent_as: Encoding | None = None
    """The encoding that the sender used, if the body was encoded anew."""
    turn: ForwardedTurn | None = None
    """A turn instead of records; the body is its encoded form."""
    relayed: Relayed | None = None
    """Set for a turn that is sent, and not stored yet."""

    def count(self, telemetry: InternalTelemetry) -> None:
        """Count the records as accepted. A turn was counted when it was part of a trace."""
        if self.turn is not None:
            return
        transport, encoding = self.origin.transport, self.sent_as or self.origin.encoding
        if self.origin.signal == "traces":
            telemetry.accepted.add(transport, encoding, n=len(self.spans))
        else:
            accepted = len(self.logs) + self.without_trace + self.own_events
            telemetry.accepted_logs.add(transport, encoding, n=accepted)
            telemetry.logs_dropped.add("no_trace_id", n=self.without_trace)
            if self.own_events:
                telemetry.logs_dropped.add("own_event", n=self.own_events)


Consumer: TypeAlias = Callable[[Batch], Awaitable[bool]]
"""Takes responsibility for a batch before the sender is answered. `False`: there is no capacity,
the sender should retry later.
"""
