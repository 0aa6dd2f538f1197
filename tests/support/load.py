"""A load generator: sends gzip-compressed gRPC export requests of 100 spans for some seconds, and
prints the results as JSON.

An agent invocation has ten spans: the agent, five model calls with messages, four tool calls with
arguments and results. With `mixed`, auto-instrumentation adds ten spans for the HTTP server, HTTP
clients and database; with `agents` it adds none. To keep the cost of the generator low, requests
are made in advance from a few templates. The templates have different texts, so that they compress
like real requests, and each request gets new trace ids.

usage: load.py HOST:PORT SECONDS mixed|agents [SPANS_A_SECOND]
"""

from __future__ import annotations

import base64
import json
import random
import sys
import threading
import time
from itertools import cycle
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.testing import span, trace_id

SPANS = 100
TEMPLATES = 16
NOTE_BYTES = 90
"""Random text in each tool result, which every later model call repeats."""
IN_FLIGHT = 16
RETRY_S = 0.5
"""How long a refused sender waits before the next request, like an exporter."""
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
TOOLS = ("find_order", "check_policy", "refund", "notify")
ANSWER = "Your order A-1001 was refunded: 49.99 USD, you will be notified by mail."


def main() -> None:
    """Print one JSON object."""
    endpoint, seconds, mix = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    channel = grpc.insecure_channel(endpoint, compression=grpc.Compression.Gzip)
    grpc.channel_ready_future(channel).result(timeout=30)
    rate = float(sys.argv[4]) if len(sys.argv) > 4 else float("inf")
    print(json.dumps(Load(channel, mix).run(seconds, rate)))


class Load:
    """Keeps `IN_FLIGHT` requests in flight. A refused request is counted, and replaced after
    `RETRY_S`.
    """

    def __init__(self, channel: grpc.Channel, mix: str) -> None:
        self._export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            EXPORT, request_serializer=None, response_deserializer=None
        )
        self._invocations = SPANS // len(invocation("0", mix))
        requests = [request(self._invocations, mix).SerializeToString() for _ in range(TEMPLATES)]
        self._bytes_per_span = sum(map(len, requests)) / TEMPLATES / SPANS
        self._templates = cycle(requests)
        self._free = threading.Semaphore(IN_FLIGHT)
        self._latencies: list[float] = []
        self._refused = 0

    def run(self, seconds: float, rate: float) -> dict[str, float]:
        """Send for `seconds`, at most `rate` spans per second, and wait for the last response."""
        began, sent = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - began) < seconds:
            time.sleep(max(0.0, sent / rate - elapsed))
            self._free.acquire()
            self._send()
            sent += SPANS
        for _ in range(IN_FLIGHT):
            self._free.acquire()
        elapsed = time.perf_counter() - began
        acked = sorted(self._latencies)
        return {
            "spans": len(acked) * SPANS,
            "invocations": len(acked) * self._invocations,
            "refused": self._refused * SPANS,
            "seconds": elapsed,
            "bytes_per_span": self._bytes_per_span,
            "ack_p50_ms": acked[len(acked) // 2] * 1000,
            "ack_p99_ms": acked[len(acked) * 99 // 100] * 1000,
        }

    def _send(self) -> None:
        call = self._export.future(with_new_ids(next(self._templates), self._invocations))
        sent = time.perf_counter()

        def answered(done: grpc.Future[Any]) -> None:
            if done.exception() is None:
                self._latencies.append(time.perf_counter() - sent)
                self._free.release()
            else:
                self._refused += 1
                threading.Timer(RETRY_S, self._free.release).start()

        call.add_done_callback(answered)


def with_new_ids(template: bytes, invocations: int) -> bytes:
    """The same spans with new trace ids."""
    new_ids = random.randbytes(16 * invocations)
    for number in range(invocations):
        old, new = bytes.fromhex(trace_id(str(number))), new_ids[16 * number : 16 * number + 16]
        template = template.replace(old, new).replace(old.hex().encode(), new.hex().encode())
    return template


def request(invocations: int, mix: str) -> ExportTraceServiceRequest:
    """One export request as an SDK would send it."""
    created = ExportTraceServiceRequest()
    scope = created.resource_spans.add().scope_spans.add()
    scope.scope.name = "bench"
    for number in range(invocations):
        scope.spans.extend(one.proto for one in invocation(str(number), mix))
    return created


def invocation(trace: str, mix: str) -> list[Span]:
    """The spans of one agent invocation."""
    agent = agent_spans(trace)
    return agent if mix == "agents" else [*agent, *surrounding_spans(trace)]


def surrounding_spans(trace: str) -> list[Span]:
    """The spans of auto-instrumentation: the request that the agent serves, and a client request or
    query below each model call and tool call.
    """
    server = {
        "http.request.method": "POST",
        "http.route": "/chat",
        "url.path": "/chat",
        "http.response.status_code": 200,
    }
    client = {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "server.address": "api.openai.com",
        "server.port": 443,
        "url.full": "https://api.openai.com/v1/chat/completions",
    }
    query = {
        "db.system.name": "postgresql",
        "db.namespace": "shop",
        "db.query.text": "SELECT * FROM orders WHERE id = $1",
        "server.address": "db",
    }
    return [
        span("server", "POST /chat", server, trace=trace, end=5.1),
        *(
            span(
                f"http{step}",
                "POST",
                client,
                trace=trace,
                parent=f"model{step}",
                start=step + 0.1,
                end=step + 0.4,
            )
            for step in range(5)
        ),
        *(
            span(
                f"db{step}",
                "SELECT shop.orders",
                query,
                trace=trace,
                parent=f"tool{step}",
                start=step + 0.6,
                end=step + 0.8,
            )
            for step in range(4)
        ),
    ]


def agent_spans(trace: str) -> list[Span]:
    """Ten spans that follow the GenAI semantic conventions."""
    common = {
        "gen_ai.agent.name": "support",
        "gen_ai.conversation.id": f"conversation-{trace}",
        "pathgauge.scenario.id": "bench",
    }
    spans = [
        span(
            "agent",
            "invoke_agent support",
            {"gen_ai.operation.name": "invoke_agent", **common},
            trace=trace,
            start=0,
            end=5,
        )
    ]
    history: list[Any] = [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "Please refund my order A-1001, it never arrived."}
            ],
        }
    ]
    for step, tool in enumerate((*TOOLS, None)):
        call = {
            "type": "tool_call",
            "id": f"call_{step}",
            "name": tool,
            "arguments": {"order_id": "A-1001", "step": step},
        }
        output = {
            "role": "assistant",
            "parts": [
                call if tool else {"type": "text", "content": f"{ANSWER} ({trace_id(trace)})"}
            ],
            "finish_reason": "stop",
        }
        spans.append(
            span(
                f"model{step}",
                "chat gpt-4o-mini",
                _model(history, output) | common,
                trace=trace,
                parent="agent",
                start=step,
                end=step + 0.5,
            )
        )
        if tool:
            note = base64.b64encode(random.randbytes(NOTE_BYTES)).decode()
            result = {"order_id": "A-1001", "status": "ok", "amount": 49.99, "note": note}
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": f"call_{step}",
                "gen_ai.tool.call.arguments": json.dumps(call["arguments"]),
                "gen_ai.tool.call.result": json.dumps(result),
            }
            spans.append(
                span(
                    f"tool{step}",
                    f"execute_tool {tool}",
                    attributes | common,
                    trace=trace,
                    parent="agent",
                    start=step + 0.5,
                    end=step + 0.9,
                )
            )
            part = {"type": "tool_call_response", "id": f"call_{step}", "response": result}
            history = [*history, output, {"role": "tool", "parts": [part]}]
    return spans


def _model(history: list[Any], output: dict[str, Any]) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.input.messages": json.dumps(history),
        "gen_ai.output.messages": json.dumps([output]),
    }


if __name__ == "__main__":
    main()
