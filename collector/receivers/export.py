"""One export request, whatever carried it: bytes in, an outcome out that each transport words in
its own way.

An outcome is final (the sender must not try again) or retryable. Records are counted when it is
final, requests always.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar

import structlog
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from pathgauge.collector.core import otlp
from pathgauge.collector.core.internal_telemetry import Counter, InternalTelemetry
from pathgauge.collector.core.otlp import Decoded, Encoding, Signal, UndecodableError
from pathgauge.collector.core.otlp.batch import Batch, Consumer, Origin, Transport
from pathgauge.collector.core.otlp.spans import LogRecord, Span

Code: TypeAlias = Literal[
    "ok",
    "partial_success",
    "unauthenticated",
    "undecodable",
    "too_large",
    "unsupported",
    "too_slow",
    "disconnected",
    "busy",
    "failed",
]
"""How a request was answered. `busy` and `failed` ask the sender to try again; the others are
final.
"""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReceiverLimits:
    """How much one request may cost. The defaults are for agents, whose spans carry whole
    conversations.
    """

    max_request_bytes: int = 16 * 1024 * 1024
    """Of a request as received, and again when decompressed. gRPC's own default, 4 MiB, refuses
    ordinary batches of such spans for good; the 64 MiB that OTLP recommends would let a few senders
    fill the memory of a small collector.
    """
    body_timeout_s: float = 30.0
    """For an HTTP request body to arrive. Exporters give up after 10 s, so only a trickle is cut
    off.
    """
    body_grace_s: float = 5.0
    """For an HTTP request body to arrive at any rate, and for the end of one that is refused; for a
    gRPC message to get its turn.
    """
    min_body_rate: float = 1024.0
    """Bytes/s that an HTTP request body must have had on the average when the grace is over."""
    max_held_bytes: int = 64 * 1024 * 1024
    """Of all requests of one transport that are not answered yet, those that arrive over HTTP
    included; senders beyond it are told to retry. Of messages that arrive over gRPC only the number
    is known, and limited.
    """
    records: otlp.DecodeLimits = field(default_factory=otlp.DecodeLimits)
    """What is decoded of a request."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The answer to a request: `response` when it succeeded, even partly, else `message`."""

    code: Code
    message: str = ""
    response: Message | None = None


RecordT = TypeVar("RecordT", Span, LogRecord)


class _Decode(Protocol[RecordT]):
    def __call__(
        self, body: bytes, *, tenant: str, limits: otlp.DecodeLimits
    ) -> Decoded[RecordT]: ...


_LARGE_BODY_BYTES = 256 * 1024
"""A protobuf body of that size takes a millisecond to decode as a rule, and 0.3 s when it is made
to.
"""
_BUSY = ExportResult("busy", "no room at the moment, try again")
_DECODE_TRACES: Mapping[Encoding, _Decode[Span]] = {
    "protobuf": otlp.decode_traces,
    "json": otlp.decode_traces_json,
}
_DECODE_LOGS: Mapping[Encoding, _Decode[LogRecord]] = {
    "protobuf": otlp.decode_logs,
    "json": otlp.decode_logs_json,
}


class ExportService:
    """Decodes requests of one transport, hands the valid records on, and counts."""

    def __init__(
        self,
        transport: Transport,
        accept: Consumer,
        telemetry: InternalTelemetry,
        limits: ReceiverLimits,
    ) -> None:
        self.transport: Transport = transport
        self._accept = accept
        self._telemetry = telemetry
        self._limits = limits.records
        self._max_held_bytes = limits.max_held_bytes
        self._held_bytes = 0
        self._turns: defaultdict[tuple[Encoding, bool], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def export(self, origin: Origin, body: bytes) -> ExportResult:
        """Take one request. Never raises, save for cancellation."""
        outcome = await self._within_budget(origin, body)
        self.count(origin.signal, outcome.code)
        return outcome

    def count(self, signal: Signal, code: Code) -> None:
        """Count a request by its answer; for those that a transport answers without `export`."""
        self._telemetry.requests.add(self.transport, signal, code)

    async def _within_budget(self, origin: Origin, body: bytes) -> ExportResult:
        """Other requests may have no room left for this one, but a single one always has."""
        if self._held_bytes and self._held_bytes + len(body) > self._max_held_bytes:
            return _BUSY
        self._held_bytes += len(body)
        try:
            return await (
                self._traces(origin, body)
                if origin.signal == "traces"
                else self._logs(origin, body)
            )
        except UndecodableError as error:
            return ExportResult("undecodable", str(error))
        except Exception:
            _log.exception(
                "export request failed; the sender is asked to retry",
                transport=origin.transport,
                signal=origin.signal,
            )
            return ExportResult("failed", "internal error, try again")
        finally:
            self._held_bytes -= len(body)

    async def _traces(self, origin: Origin, body: bytes) -> ExportResult:
        decoded = await self._decode(_DECODE_TRACES, origin, body)
        if decoded.records and not await self._accept(Batch(origin, body, spans=decoded.records)):
            return _BUSY
        self._count_rejected(decoded, self._telemetry.refused)
        response = ExportTraceServiceResponse()
        if decoded.rejected:
            response.partial_success.rejected_spans = sum(decoded.rejected.values())
            response.partial_success.error_message = decoded.message
        return ExportResult("partial_success" if decoded.rejected else "ok", response=response)

    async def _logs(self, origin: Origin, body: bytes) -> ExportResult:
        decoded = await self._decode(_DECODE_LOGS, origin, body)
        batch = Batch(
            origin,
            body,
            logs=decoded.records,
            without_trace=decoded.without_trace,
            own_events=decoded.own_events,
        )
        if (
            decoded.records or decoded.without_trace or decoded.own_events
        ) and not await self._accept(batch):
            return _BUSY
        self._count_rejected(decoded, self._telemetry.refused_logs)
        response = ExportLogsServiceResponse()
        if decoded.rejected:
            response.partial_success.rejected_log_records = sum(decoded.rejected.values())
            response.partial_success.error_message = decoded.message
        return ExportResult("partial_success" if decoded.rejected else "ok", response=response)

    async def _decode(
        self, decoders: Mapping[Encoding, _Decode[RecordT]], origin: Origin, body: bytes
    ) -> Decoded[RecordT]:
        decode, large = decoders[origin.encoding], len(body) > _LARGE_BODY_BYTES
        if origin.encoding == "protobuf" and not large:
            return decode(body, tenant=origin.tenant, limits=self._limits)
        # What takes long must not hold up the event loop: large bodies, and JSON, which is fifty
        # times slower than protobuf. One at a time bounds their memory; small ones do not wait for
        # large ones.
        async with self._turns[origin.encoding, large]:
            return await asyncio.to_thread(decode, body, tenant=origin.tenant, limits=self._limits)

    def _count_rejected(self, decoded: Decoded[RecordT], refused: Counter) -> None:
        for reason, records in decoded.rejected.items():
            refused.add(self.transport, reason, n=records)
