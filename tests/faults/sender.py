"""Sends every request until it is acknowledged, and records the answers.

Half of the threads use gRPC, half HTTP. Like OTLP exporters, they retry after retryable refusals
and after lost connections. When a connection is lost, it is unknown whether the request arrived.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from .traffic import Request, Traffic

RETRY_S = 0.05
DEADLINE_S = 10.0
FINISHED_S = 240.0
"""Longer than any fault lasts."""
_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_QUICK_RECONNECT = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 100),
)


_NOT_SENT = ("failed to connect", "Failed to connect", "RST_STREAM with error code 7")
"""Messages of gRPC for a missing connection, and for REFUSED_STREAM: HTTP/2 refused the stream
before it was read.
"""


class UnansweredError(Exception):
    """The connection was lost: it is unknown whether the request arrived."""


class UnreachableError(Exception):
    """There was no connection: the request did not arrive."""


class RefusedError(Exception):
    """The collector asked for a retry."""

    def __init__(self, retry_after: float | None) -> None:
        super().__init__(f"retry after {retry_after}")
        self.retry_after = retry_after
        """In seconds; `None` if the answer has no delay."""


class WrongAnswerError(Exception):
    """Rejected for good, which is a wrong answer to a valid request."""


class Client(Protocol):
    """Sends over one transport."""

    def send(self, body: bytes) -> None:
        """Send a request. Raises one of the errors above unless it is acknowledged."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class GrpcClient:
    """OTLP over gRPC."""

    def __init__(self, port: int) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=_QUICK_RECONNECT)
        self._export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(
            _EXPORT, request_serializer=None, response_deserializer=None
        )

    def send(self, body: bytes) -> None:
        try:
            answer = self._export(body, timeout=DEADLINE_S)
        except grpc.RpcError as error:
            raise of_grpc(error) from error
        _check(answer)

    def close(self) -> None:
        self._channel.close()


class HttpClient:
    """OTLP over HTTP, with one kept connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)

    def send(self, body: bytes) -> None:
        try:
            self._connect()
            self._connection.request(
                "POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"}
            )
            answer = self._connection.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise UnansweredError(repr(error)) from error
        if answer.status in {429, 502, 503, 504}:
            after = answer.getheader("Retry-After")
            raise RefusedError(float(after) if after else None)
        if answer.status != 200:
            raise WrongAnswerError(f"{answer.status} {said!r}")
        _check(said)

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> None:
        if self._connection.sock is None:
            try:
                self._connection.connect()
            except OSError as error:
                raise UnreachableError(repr(error)) from error


def of_grpc(error: grpc.RpcError) -> Exception:
    """The error for a failed call: one of the classes above."""
    call: Any = error  # every error of a call is the call itself, which the stubs do not know
    trailers = dict(call.trailing_metadata() or ())
    details = trailers.get("grpc-status-details-bin")
    if details is None:
        if any(words in str(call.details()) for words in _NOT_SENT):
            return UnreachableError(str(call.details()))
        lost = {
            grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.DEADLINE_EXCEEDED,
            grpc.StatusCode.CANCELLED,
            grpc.StatusCode.UNKNOWN,
        }
        text = f"{call.code()} {call.details()}"
        return UnansweredError(text) if call.code() in lost else WrongAnswerError(text)
    for detail in Status.FromString(details).details:
        info = RetryInfo()
        if detail.Unpack(info):
            return RefusedError(info.retry_delay.ToTimedelta().total_seconds())
    return WrongAnswerError(f"{call.code()} {call.details()}")


def _check(answer: bytes) -> None:
    rejected = ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans
    if rejected:
        raise WrongAnswerError(f"{rejected} spans rejected")


@dataclass(slots=True)
class Record:
    """The answers to all requests; several threads write it, under the lock of the sender."""

    acked: dict[int, Request] = field(default_factory=dict)
    acked_spans: int = 0
    """The spans of every acknowledged request, including repetitions."""
    unanswered_spans: int = 0
    """The spans of every attempt with an unknown result."""
    unanswered: dict[int, Request] = field(default_factory=dict)
    refused_spans: int = 0
    """The spans of every attempt that was refused. One of several scorers may have stored its part.
    """
    refusals: list[float | None] = field(default_factory=list)
    """The delay in each refusal."""
    wrong: list[str] = field(default_factory=list)


class Sender:
    """Sends the traffic of a seed from several threads, from `start` until `finish`."""

    def __init__(
        self,
        traffic: Traffic,
        grpc_port: int,
        http_port: int,
        threads: int = 4,
        pause: float = 0.02,
    ) -> None:
        """`pause` is the time between two requests of a thread in seconds."""
        self.record = Record()
        self._last_failure = ""
        self._traffic = traffic
        self._pause = pause
        self._lock = threading.Lock()
        self._stopping, self._giving_up, self._sending = (
            threading.Event(),
            threading.Event(),
            threading.Event(),
        )
        self._sending.set()
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(GrpcClient(grpc_port) if number % 2 else HttpClient(http_port),),
                daemon=True,
            )
            for number in range(threads)
        ]

    def start(self) -> None:
        """Start sending."""
        for thread in self._threads:
            thread.start()

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """No request is started within this context."""
        self._sending.clear()
        try:
            yield
        finally:
            self._sending.set()

    def finish(self) -> Record:
        """Start no more traces, and return when all started ones are acknowledged."""
        self._stopping.set()
        ends = time.monotonic() + FINISHED_S
        for thread in self._threads:
            thread.join(max(0.0, ends - time.monotonic()))
        alive = [thread.name for thread in self._threads if thread.is_alive()]
        assert not alive, f"{alive} still try to send; last failure: {self._last_failure}"
        return self.record

    def break_off(self) -> Record:
        """Drop what is not acknowledged yet."""
        self._giving_up.set()
        return self.finish()

    def acknowledged(self) -> int:
        """The number of acknowledged requests."""
        return len(self.record.acked)

    def acked(self) -> list[Request]:
        """The spans that are acknowledged by now."""
        with self._lock:
            return list(self.record.acked.values())

    def _run(self, client: Client) -> None:
        try:
            while requests := self._next():
                for request in requests:
                    self._send(client, request)
        finally:
            client.close()

    def _next(self) -> Sequence[Request]:
        self._sending.wait()
        if self._giving_up.is_set() or not self._stopping.wait(self._pause):
            with self._lock:
                return [] if self._giving_up.is_set() else self._traffic.next()
        with self._lock:
            return self._traffic.last()

    def _send(self, client: Client, request: Request) -> None:
        while True:
            try:
                client.send(request.body)
            except UnreachableError as unreachable:
                self._last_failure = repr(unreachable)
            except RefusedError as refused:
                self._last_failure = repr(refused)
                self._note_refused(refused, request)
            except UnansweredError as unanswered:
                self._last_failure = repr(unanswered)
                self._note_unanswered(request)
            except WrongAnswerError as wrong:
                self._note_wrong(wrong)
                return
            else:
                self._note_acked(request)
                return
            if self._giving_up.wait(RETRY_S):
                return

    def _note_acked(self, request: Request) -> None:
        with self._lock:
            self.record.acked[request.number] = request
            self.record.acked_spans += request.size

    def _note_unanswered(self, request: Request) -> None:
        with self._lock:
            self.record.unanswered[request.number] = request
            self.record.unanswered_spans += request.size

    def _note_refused(self, refused: RefusedError, request: Request) -> None:
        with self._lock:
            self.record.refused_spans += request.size
            self.record.refusals.append(refused.retry_after)

    def _note_wrong(self, wrong: WrongAnswerError) -> None:
        with self._lock:
            self.record.wrong.append(str(wrong))
