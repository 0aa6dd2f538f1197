"""One export request, independent of the transport: decodes it, passes the valid records on, and
returns a result that each transport turns into its own response.

A result is final (the sender must not retry) or retryable. Every request is counted; rejected
records are counted only with a final result.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import structlog
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import DecodeLimits, Encoding, Signal, UndecodableError
from pathgauge.collector.core.otlp.batch import Batch, Consumer, Origin, Transport
from pathgauge.collector.core.otlp.decode_batch import DecodedBatch, decode_batch
from pathgauge.collector.receivers.memory_guard import MemoryGuard, NoMemoryError
from pathgauge.collector.receivers.refused_requests import RefusedRequests, Sender

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
"""How a request was answered. `busy` and `failed` ask the sender to retry; the others are final."""

_LOSING: frozenset[Code] = frozenset(
    {"partial_success", "unauthenticated", "undecodable", "too_large", "unsupported", "too_slow"}
)
"""What is not sent again."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReceiverLimits:
    """How much one request may cost. The defaults suit agents, whose spans carry whole
    conversations.
    """

    max_request_bytes: int = 16 * 1024 * 1024
    """Size of a request as received, and again when decompressed. gRPC's default of 4 MiB would
    reject ordinary batches of such spans for good. With the 64 MiB that OTLP recommends, a few
    senders could fill the memory of a small collector.
    """
    body_timeout_s: float = 30.0
    """Time limit for an HTTP request body. Exporters give up after 10 s, so this only stops
    senders that trickle.
    """
    body_grace_s: float = 5.0
    """Time during which an HTTP request body may arrive at any rate; time limit for the rest of a
    body that was rejected, and for a gRPC message to get its turn.
    """
    min_body_rate: float = 1024.0
    """Minimum average rate of an HTTP request body in bytes/s, after the grace."""
    max_held_bytes: int = 64 * 1024 * 1024
    """Size of all unanswered requests of one transport; beyond it, senders are told to retry. HTTP
    requests count while they arrive. Of gRPC messages that arrive, only the number is known; that
    has a limit of its own.
    """
    records: DecodeLimits = field(default_factory=DecodeLimits)
    """Limits for decoding."""
    max_arriving: int = 64
    """gRPC messages that are read at the same time. Each may be as large as the largest message."""
    memory: MemoryGuard = field(default_factory=MemoryGuard)
    """Refuses requests near the memory limit of the process."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The answer to a request: a `response` after (partial) success, else a `message`."""

    code: Code
    message: str = ""
    response: Message | None = None


_LARGE_BODY_BYTES = 256 * 1024
"""A protobuf body of this size usually takes a millisecond to decode, and 0.3 s when it is crafted
for that.
"""
PROTOBUF_COST = 4
"""Memory that a protobuf request may take while it is decoded, for each of its bytes."""
JSON_TOKEN_BYTES = 160
"""The same for each token of a JSON request."""
_JSON_COST = 20
"""The same for each byte of a JSON request, however many tokens it has."""
_BUSY = ExportResult("busy", "no capacity at the moment, try again")
_RESPONSES: Mapping[Signal, tuple[Callable[..., Message], str]] = {
    "traces": (ExportTraceServiceResponse, "rejected_spans"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records"),
}
"""The response message of each signal, and its field for the number of rejected records."""


class ExportService:
    """Handles the export requests of one transport."""

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
        self._memory = limits.memory
        self._refused = RefusedRequests(transport)
        self._max_held_bytes = limits.max_held_bytes
        self._held_bytes = 0
        self._turns: defaultdict[tuple[Encoding, bool], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def export(
        self, origin: Origin, body: bytes, sender: Callable[[], Sender] | None = None
    ) -> ExportResult:
        """Handle one request. `sender` is asked if it is refused. Never raises, except for
        cancellation.
        """
        result = await self._within_budget(origin, body)
        self.count(origin.signal, result.code, sender, origin.tenant)
        return result

    def count(
        self,
        signal: Signal,
        code: Code,
        sender: Callable[[], Sender] | None = None,
        tenant: str = "",
    ) -> None:
        """Count a request; for requests that a transport answers without calling `export`."""
        self._telemetry.requests.add(self.transport, signal, code)
        if sender is not None and code in _LOSING:
            self._refused.note(sender()._replace(tenant=tenant), code, signal=signal)

    async def _within_budget(self, origin: Origin, body: bytes) -> ExportResult:
        # A single request is always allowed, whatever its size.
        if self._held_bytes and self._held_bytes + len(body) > self._max_held_bytes:
            return _BUSY
        self._held_bytes += len(body)
        try:
            with self._memory.reserved(self._decoding_bytes(origin, body)):
                decoded = await self._decode(origin, body)
            return await self._pass_on(origin, decoded)
        except UndecodableError as error:
            return ExportResult("undecodable", str(error))
        except NoMemoryError as error:
            return ExportResult("busy", str(error))
        except Exception:
            _log.exception(
                "export request failed; the sender is asked to retry",
                transport=origin.transport,
                signal=origin.signal,
            )
            return ExportResult("failed", "internal error, try again")
        finally:
            self._held_bytes -= len(body)

    def _decoding_bytes(self, origin: Origin, body: bytes) -> int:
        """The memory that a request may need to be decoded."""
        if origin.encoding == "protobuf":
            return PROTOBUF_COST * len(body)
        return min(_JSON_COST * len(body), JSON_TOKEN_BYTES * self._limits.max_json_tokens)

    async def _decode(self, origin: Origin, body: bytes) -> DecodedBatch:
        if origin.encoding == "protobuf" and len(body) <= _LARGE_BODY_BYTES:
            return decode_batch(origin, body, self._limits)
        return await self._decode_in_thread(origin, body)

    async def _pass_on(self, origin: Origin, decoded: DecodedBatch) -> ExportResult:
        if _has_records(decoded.batch) and not await self._accept(decoded.batch):
            return _BUSY
        response, rejected_field = _RESPONSES[origin.signal]
        if not decoded.rejected:
            return ExportResult("ok", response=response())
        self._count_rejected(origin.signal, decoded)
        rejected = {
            rejected_field: sum(decoded.rejected.values()),
            "error_message": decoded.message,
        }
        return ExportResult("partial_success", response=response(partial_success=rejected))

    async def _decode_in_thread(self, origin: Origin, body: bytes) -> DecodedBatch:
        """For large bodies, and for JSON, which is fifty times slower than protobuf: they must not
        block the event loop.
        """
        # One at a time bounds their memory. Small ones do not wait for large ones.
        async with self._turns[origin.encoding, len(body) > _LARGE_BODY_BYTES]:
            return await asyncio.to_thread(decode_batch, origin, body, self._limits)

    def _count_rejected(self, signal: Signal, decoded: DecodedBatch) -> None:
        telemetry = self._telemetry
        counter = telemetry.refused if signal == "traces" else telemetry.refused_logs
        for reason, records in decoded.rejected.items():
            counter.add(self.transport, reason, n=records)


def _has_records(batch: Batch) -> bool:
    return bool(batch.spans or batch.logs or batch.without_trace or batch.own_events)
