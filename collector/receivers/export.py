"""One export request, whatever carried it: bytes in, an outcome out that each transport words in its own way.

An outcome is final (the sender must not try again) or retryable. Records are counted when it is final, requests always.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar

import structlog
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector import otlp
from collector.otlp import Decoded, UndecodableError
from collector.receivers.intake import Accept, Batch
from collector.spans import LogRecord, Span
from collector.telemetry import Counter, Ledger

Signal: TypeAlias = Literal["traces", "logs"]
Encoding: TypeAlias = Literal["protobuf", "json"]
Transport: TypeAlias = Literal["grpc", "http"]
Code: TypeAlias = Literal["ok", "partial_success", "undecodable", "too_large", "unsupported", "too_slow", "disconnected", "busy", "failed"]
"""How a request was answered. `busy` and `failed` ask the sender to try again; the others are final."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReceiverLimits:
    """How much one request may cost. The defaults are for agents, whose spans carry whole conversations."""

    max_request_bytes: int = 16 * 1024 * 1024
    """Of a request as received, and again when decompressed. gRPC's own default, 4 MiB, refuses ordinary batches of such
    spans for good; the 64 MiB that OTLP recommends would let a few senders fill the memory of a small collector."""
    body_timeout_s: float = 30.0
    """For an HTTP request body to arrive. Exporters give up after 10 s, so only a trickle is cut off."""
    max_held_bytes: int = 128 * 1024 * 1024
    """Of all HTTP request bodies that are arriving or not answered yet; when it is reached, senders are told to retry."""
    records: otlp.Limits = field(default_factory=otlp.Limits)
    """What is decoded of a request."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a request: `response` when it succeeded, even partly, else `message`."""

    code: Code
    message: str = ""
    response: Message | None = None


RecordT = TypeVar("RecordT", Span, LogRecord)


class _Decode(Protocol[RecordT]):
    def __call__(self, body: bytes, *, limits: otlp.Limits) -> Decoded[RecordT]: ...


_BUSY = Outcome("busy", "no room at the moment, try again")
_DECODE_TRACES: Mapping[Encoding, _Decode[Span]] = {"protobuf": otlp.decode_traces, "json": otlp.decode_traces_json}
_DECODE_LOGS: Mapping[Encoding, _Decode[LogRecord]] = {"protobuf": otlp.decode_logs, "json": otlp.decode_logs_json}


class ExportService:
    """Decodes requests of one transport, hands the valid records on, and counts."""

    def __init__(self, transport: Transport, accept: Accept, ledger: Ledger, limits: ReceiverLimits) -> None:
        self._transport = transport
        self._accept = accept
        self._ledger = ledger
        self._limits = limits.records
        self._json_turn = asyncio.Lock()

    async def export(self, signal: Signal, encoding: Encoding, body: bytes) -> Outcome:
        """Take one request. Never raises, save for cancellation."""
        try:
            outcome = await (self._traces(encoding, body) if signal == "traces" else self._logs(encoding, body))
        except UndecodableError as error:
            outcome = Outcome("undecodable", str(error))
        except Exception:
            _log.exception("export request failed; the sender is asked to retry", transport=self._transport, signal=signal)
            outcome = Outcome("failed", "internal error, try again")
        self.count(signal, outcome.code)
        return outcome

    def count(self, signal: Signal, code: Code) -> None:
        """Count a request by its answer; for those that a transport answers without `export`."""
        self._ledger.requests.add(self._transport, signal, code)

    async def _traces(self, encoding: Encoding, body: bytes) -> Outcome:
        decoded = await self._decode(_DECODE_TRACES, encoding, body)
        if decoded.records and not await self._accept(Batch(spans=decoded.records, size=len(body))):
            return _BUSY
        self._count_records(encoding, decoded, self._ledger.accepted, self._ledger.refused)
        response = ExportTraceServiceResponse()
        if decoded.rejected:
            response.partial_success.rejected_spans = sum(decoded.rejected.values())
            response.partial_success.error_message = decoded.message
        return Outcome("partial_success" if decoded.rejected else "ok", response=response)

    async def _logs(self, encoding: Encoding, body: bytes) -> Outcome:
        decoded = await self._decode(_DECODE_LOGS, encoding, body)
        if decoded.records and not await self._accept(Batch(logs=decoded.records, size=len(body))):
            return _BUSY
        self._count_records(encoding, decoded, self._ledger.accepted_logs, self._ledger.refused_logs)
        self._ledger.logs_dropped.add("no_trace_id", n=decoded.without_trace)
        response = ExportLogsServiceResponse()
        if decoded.rejected:
            response.partial_success.rejected_log_records = sum(decoded.rejected.values())
            response.partial_success.error_message = decoded.message
        return Outcome("partial_success" if decoded.rejected else "ok", response=response)

    async def _decode(self, decoders: Mapping[Encoding, _Decode[RecordT]], encoding: Encoding, body: bytes) -> Decoded[RecordT]:
        decode = decoders[encoding]
        if encoding == "protobuf":
            return decode(body, limits=self._limits)
        # Fifty times slower than protobuf, so it must not hold up the event loop; one at a time bounds its memory.
        async with self._json_turn:
            return await asyncio.to_thread(decode, body, limits=self._limits)

    def _count_records(self, encoding: Encoding, decoded: Decoded[RecordT], accepted: Counter, refused: Counter) -> None:
        accepted.add(self._transport, encoding, n=len(decoded.records) + decoded.without_trace)
        for reason, records in decoded.rejected.items():
            refused.add(self._transport, reason, n=records)
