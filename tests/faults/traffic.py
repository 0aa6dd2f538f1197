"""Generates the requests of many agents from a seed. Their traces overlap, are split, repeat and
arrive in any order.

When `last` returns nothing, every span of a started trace was in some request, so all traces are
complete.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pathgauge.collector.core.otlp import decode_traces
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.testing import span

TOOLS = ("find_order", "check_policy", "refund", "notify")
AGENTS = ("support", "billing", "shipping")
REFERENCES: list[dict[str, Any]] = [
    {"scenario": "refund", "expected_tools": ["find_order", "refund"]},
    {"scenario": "parcel", "expected_tools": ["find_order", "notify", "notify"]},
    {
        "scenario": "dialogue",
        "turns": [{"expected_tools": [tool]} for tool in ("find_order", "check_policy", "refund")],
    },
]
CRITERIA: dict[str, Any] = {
    "tool_trajectory_f1": 0.5,
    "tool_trajectory_avg_score": 1.0,
    "tool_calls": None,
    "failure": 0.5,
}
_SCENARIOS = ("refund", "refund", "parcel", "unheard-of", None)
_TURNS = 3
"""Of each conversation."""
_REPEATED = 0.08
_PARTS_OF_A_REQUEST = 5


@dataclass(frozen=True, slots=True)
class Request:
    """An export request. Two requests with the same number are the same one, sent twice."""

    number: int
    body: bytes
    """Protobuf."""
    size: int
    """The number of spans."""

    def spans(self) -> Sequence[Span]:
        """The spans as the collector decodes them."""
        return decode_traces(self.body).records


class Traffic:
    """An endless stream of requests, the same for the same seed."""

    def __init__(self, seed: int, conversations: float = 0.0) -> None:
        """`conversations` is the share of traces that are turns of conversations."""
        self._conversations = conversations
        self._turns = 0
        self._random = Random(seed)
        self._prefix = f"{seed}"
        self._traces = self._requests = 0
        self._sizes: dict[str, int] = {}
        """The number of spans of each trace."""
        self._waiting: list[list[Span]] = []
        """Parts of traces that are not sent yet, in random order."""

    def next(self) -> list[Request]:
        """One request, or the same request twice."""
        while len(self._waiting) < 4 * _PARTS_OF_A_REQUEST:
            self._begin_trace()
        return self._take(self._random.randint(1, _PARTS_OF_A_REQUEST))

    def last(self) -> list[Request]:
        """Like `next`, but only with started traces; empty when all their spans are sent."""
        return self._take(_PARTS_OF_A_REQUEST) if self._waiting else []

    def missing(self, requests: Iterable[Request]) -> dict[str, int]:
        """The number of spans of each trace, by id, that are not in these requests."""
        there = {(span.trace_id, span.span_id) for request in requests for span in request.spans()}
        found = Counter(trace_id for trace_id, _ in there)
        return {trace_id: size - found[trace_id] for trace_id, size in list(self._sizes.items())}

    def _take(self, parts: int) -> list[Request]:
        taken = [
            self._waiting.pop(self._random.randrange(len(self._waiting)))
            for _ in range(min(parts, len(self._waiting)))
        ]
        self._requests += 1
        request = request_of(self._requests, [one for part in taken for one in part])
        return [request] * (2 if self._random.random() < _REPEATED else 1)

    def _begin_trace(self) -> None:
        self._traces += 1
        name = f"{self._prefix}-{self._traces}"
        if self._random.random() < self._conversations:
            spans = trace(name, self._random, self._next_turn())
        else:
            spans = trace(name, self._random)
        self._sizes[spans[0].trace_id] = len(spans)
        self._waiting.extend(split(spans, self._random))

    def _next_turn(self) -> dict[str, Any]:
        """The attributes of a turn that states its number, so that its score never changes."""
        conversation, number = divmod(self._turns, _TURNS)
        self._turns += 1
        return {
            "pathgauge.scenario.id": "dialogue",
            "gen_ai.conversation.id": f"{self._prefix}-{conversation}",
            "pathgauge.turn": number,
        }


def trace(name: str, random: Random, turn: dict[str, Any] | None = None) -> list[Span]:
    """The spans of one agent run, the root first. Some agents run inside a web server, some have
    sub-agents. `turn` has the attributes of a turn of a conversation.
    """
    spans = (
        [span("server", "POST /chat", {"http.request.method": "POST"}, trace=name, end=9.0)]
        if random.random() < 0.3
        else []
    )
    parent = "server" if spans else None
    scenario = random.choice(_SCENARIOS)
    stated = turn or ({} if scenario is None else {"pathgauge.scenario.id": scenario})
    spans += run("agent", AGENTS[0], random, trace=name, parent=parent, stated=stated)
    for number in range(random.choice((0, 0, 1, 2))):
        spans += run(
            f"sub{number}",
            AGENTS[1 + number],
            random,
            trace=name,
            parent="agent",
            start=5.0 + number,
        )
    return spans


def run(
    id: str,
    agent: str,
    random: Random,
    *,
    trace: str,
    parent: str | None,
    start: float = 0.0,
    stated: Mapping[str, Any] | None = None,
) -> list[Span]:
    """One agent, the models and the tools that it calls. `stated` has further attributes."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        **(stated or {}),
    }
    error = "no such order" if random.random() < 0.1 else None
    spans = [
        span(
            id,
            f"invoke_agent {agent}",
            attributes,
            trace=trace,
            parent=parent,
            start=start,
            end=start + 1,
            error=error,
        )
    ]
    steps = random.randint(0, 4)
    if steps == 0:
        spans.append(answer(id, trace, start))
    for step in range(steps):
        tool, at = random.choice(TOOLS), start + 0.2 * step
        called = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": f"{id}-call{step}",
            "gen_ai.tool.call.arguments": json.dumps(
                {"order": random.randrange(1000), "step": step}
            ),
            "gen_ai.tool.call.result": json.dumps({"ok": random.random() < 0.9}),
        }
        model = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": random.randint(1, 50),
        }
        spans.append(
            span(
                f"{id}-model{step}",
                "chat gpt-4o-mini",
                model,
                trace=trace,
                parent=id,
                start=at,
                end=at + 0.1,
            )
        )
        spans.append(
            span(
                f"{id}-tool{step}",
                f"execute_tool {tool}",
                called,
                trace=trace,
                parent=id,
                start=at + 0.1,
                end=at + 0.2,
            )
        )
    return spans


def answer(id: str, trace: str, start: float) -> Span:
    """A model call that asks for no tool. Without it, an agent without tool calls would be scored
    by what its earlier traces have shown, which depends on the order of arrival.
    """
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.response.finish_reasons": ["stop"],
    }
    return span(
        f"{id}-model",
        "chat gpt-4o-mini",
        attributes,
        trace=trace,
        parent=id,
        start=start,
        end=start + 0.1,
    )


def split(spans: list[Span], random: Random) -> list[list[Span]]:
    """The spans in one to four parts: the root first, last, or anywhere."""
    order: Literal["first", "last", "any"] = random.choice(("first", "last", "any"))
    spans = spans[::-1] if order == "last" else list(spans)
    if order == "any":
        random.shuffle(spans)
    cuts = sorted(random.sample(range(1, len(spans)), min(random.randint(0, 3), len(spans) - 1)))
    return [spans[start:end] for start, end in zip([0, *cuts], [*cuts, len(spans)], strict=True)]


def request_of(number: int, spans: Sequence[Span]) -> Request:
    """One export request as an SDK would send it."""
    made = ExportTraceServiceRequest()
    scope = made.resource_spans.add().scope_spans.add()
    scope.scope.name = "faults"
    scope.spans.extend(one.proto for one in spans)
    return Request(number, made.SerializeToString(), len(spans))
