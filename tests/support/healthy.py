"""Senders that behave, beside those that do not: ports come in; what they sent, what failed and how
long they waited goes out.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Self, TypeAlias

import grpc

from support import http2
from support.running import PATIENCE_S
from support.turns import otlp, otlp_json, script, turn

PAUSE_S = 0.02
SPANS = len(turn(script("", "lookup")))
"""Of each request."""
Send: TypeAlias = Callable[[], None]
"""Sends a request that is ready."""


class Healthy:
    """One sender over gRPC and one of JSON over HTTP; each sends one invocation after the other,
    whose agent is called `healthy`.
    """

    def __init__(self, ports: Mapping[str, int]) -> None:
        """Ports by transport, `grpc` and `http`; one may be absent."""
        self.sent: Counter[str] = Counter()
        """Invocations that were acknowledged in full, by transport."""
        self.failures: list[Exception] = []
        self.longest_s = 0.0
        """The longest time from the moment when a request was ready until its answer."""
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._go_on, args=(transport, prepare(port)))
            for transport, prepare in (("grpc", _by_grpc), ("http", _by_http))
            if (port := ports.get(transport)) is not None
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Wait for the last answers. Safe to call twice."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _go_on(self, transport: str, prepare: Callable[[], Send]) -> None:
        while not self._stop.is_set():
            send = prepare()
            began = time.monotonic()
            try:
                send()
                self.sent[transport] += 1
            except Exception as failure:
                self.failures.append(failure)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self._stop.wait(PAUSE_S)


def _by_grpc(port: int) -> Callable[[], Send]:
    def send(body: bytes) -> None:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(http2.EXPORT)
            assert export(body, timeout=PATIENCE_S) == b""

    return lambda: partial(send, otlp(turn(script("", "lookup"), agent="healthy")))


def _by_http(port: int) -> Callable[[], Send]:
    def send(body: bytes) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            connection.request("POST", "/v1/traces", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"{}")
        finally:
            connection.close()

    return lambda: partial(send, otlp_json(turn(script("", "lookup"), agent="healthy")))
