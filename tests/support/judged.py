"""A collector with a judge whose model is controlled by the test."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from pydantic import BaseModel

from pathgauge.collector.core import otlp
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    EvaluationKey,
    Evaluator,
    WhenJudged,
)
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.judging.queue import Capacity, JudgeQueue
from pathgauge.collector.judging.sampling import Sampling
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.service.request_queue import RequestQueue
from pathgauge.collector.service.worker import Worker
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.store import Purged, Selection, Store
from pathgauge.collector.store.memory import MemoryStore
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.judge_protocol import Ask, Question
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score
from support.dialects import INSTALLED
from support.running import PATIENCE_S


class Verdict(BaseModel):
    """The answer of the model."""

    score: float


@dataclass(frozen=True)
class Opinion(Share):
    """A judge that asks for a score of the response."""

    name: ClassVar[str] = "opinion"
    asks_model: ClassVar[bool] = True

    model: str | None = None

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score.not_evaluated("judge_unconfigured")

    async def judge(self, actual: Invocation, expected: ReferenceTurn | None, ask: Ask) -> Score:
        data = {"response": actual.final_response, "agent": actual.agent}
        answer = await ask(Question("How good is it?", data, Verdict))
        return Score(answer.score)


@dataclass(frozen=True)
class DueOpinion(Opinion):
    """The same judge, but it needs a reference."""

    needs_reference: ClassVar[bool] = True


JUDGED = Criterion("opinion", Opinion(), 0.5)
WORKS = Criterion("failure", Failure(), 0.5)


class Model:
    """Answers with `score`. After `hold`, answers wait for `answer`."""

    def __init__(self, score: float = 1.0) -> None:
        self.score = score
        self.asked: list[Any] = []
        self._held = threading.Event()
        self._held.set()

    def hold(self) -> None:
        self._held.clear()

    def answer(self) -> None:
        self._held.set()

    async def __call__(self, question: Question[Any]) -> Any:
        self.asked.append(question.data["agent"])
        while not self._held.is_set():
            await asyncio.sleep(0.005)
        return question.answer(score=self.score)


@dataclass
class RecordingSink:
    """Records everything published, in order."""

    published: list[tuple[Any, ...]] = field(default_factory=list)
    conversations: list[ConversationResult] = field(default_factory=list)
    withdrawn: list[EvaluationKey] = field(default_factory=list)

    def publish(self, evaluation: Evaluation, now: float) -> None:
        self._record("published", evaluation)

    def publish_judged(self, judged: Judged, now: float) -> None:
        self._record("judged" if judged.first else "judged again", judged.evaluation)

    def publish_conversation(self, result: ConversationResult, now: float) -> None:
        self.conversations.append(result)

    def withdraw(self, key: EvaluationKey) -> None:
        self.withdrawn.append(key)

    def close(self) -> None:
        pass

    def _record(self, event: str, evaluation: Evaluation) -> None:
        scores = {
            result.criterion.name: result.score.reason or result.score.value
            for result in evaluation.results
        }
        self.published.append((event, evaluation.invocation.agent, scores))


class InProcessCollector:
    """A collector without servers, from start to stop. Its clock advances only in `pass_time`."""

    def __init__(
        self,
        model: Model,
        folder: Path | None = None,
        *,
        criteria: tuple[Criterion, ...] = (WORKS, JUDGED),
        references: tuple[Reference, ...] = (),
        sampling: Sampling | None = Sampling(),  # noqa: B008 - immutable
        capacity: Capacity = Capacity(),  # noqa: B008 - immutable
        conversation_idle: float = 1000.0,
    ) -> None:
        self.store: Store = MemoryStore() if folder is None else SqliteStore(folder)
        restored = self.store.open()
        self.now = restored.at
        self.telemetry, metrics = InternalTelemetry(), DurableMetrics()
        evaluator, reference_set = Evaluator(criteria), ReferenceSet(references)
        self.pipeline = Pipeline(
            INSTALLED,
            evaluator,
            reference_set,
            self.telemetry,
            Bounds(),
            conversation_idle=conversation_idle,
            judging=None if sampling is None else self._judging_of,
        )
        self.sampling = sampling or Sampling()
        self.sink = RecordingSink()
        self.prometheus = PrometheusSink(evaluator, reference_set, self.telemetry, metrics=metrics)
        self.failures: list[tuple[str, str, str]] = []
        """Metric, exception and trace id of each judge that failed."""
        self.queue = JudgeQueue(
            model,
            self._judged,
            capacity,
            evaluator,
            reference_set,
            on_failure=lambda metric, error, trace: self.failures.append(
                (metric, type(error).__name__, trace)
            ),
        )
        publisher = Publisher(
            self.pipeline,
            self.store,
            immediate_sinks=[self.prometheus],
            sinks=[self.sink],
            durable_counts=[self.prometheus],
            judges=self.queue,
            commit_s=0.01,
        )
        self.requests = RequestQueue(self.store, lambda: self.pipeline.full, 1 << 20)
        self.worker = Worker(self.pipeline, self.store, self.telemetry, publisher, self.requests)
        self.pipeline.restore(restored.traces, self.now)
        for turn in restored.turns:
            self.pipeline.restore_turn(turn)
        for pending in restored.pending:
            self.pipeline.restore_pending(pending)
            self.queue.take(pending)
        self.prometheus.restore(restored.counts, self.store.recent, time.time())
        self.store.start(self.requests.deliver, lambda: self.now)
        self.worker.start(restored)
        self.queue.start()

    def _judging_of(self, invocation: Invocation, scenario: str | None) -> WhenJudged:
        if not self.sampling.takes(invocation, scenario):
            return "not_sampled"
        return "overloaded" if self.queue.full else "later"

    def _judged(self, pending: Any, evaluation: Evaluation) -> None:
        self.worker.judged(pending, evaluation)

    async def send(self, *batches: Batch) -> None:
        assert await asyncio.gather(*(self.requests.accept(batch) for batch in batches)) == [
            True
        ] * len(batches)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.worker.call(lambda: None)

    def purge(self, selection: Selection) -> Purged:
        return self.worker.purge(selection).result(PATIENCE_S)

    def counted(self, outcome: str) -> float:
        """The number of evaluations of `opinion` with this outcome, over all series."""
        samples = (
            sample for metric in self.prometheus.registry.collect() for sample in metric.samples
        )
        labels = {"metric": "opinion", "outcome": outcome}
        return sum(
            s.value
            for s in samples
            if s.name == "pathgauge_evaluations_total" and labels.items() <= s.labels.items()
        )

    def end(self) -> None:
        self.queue.stop()
        self.worker.stop(PATIENCE_S)
        self.store.close()


def run_of(
    agent: str,
    *,
    trace: str = "",
    parent: str | None = None,
    response: str = "Done.",
    start: float = 0.0,
    attributes: Mapping[str, str] | None = None,
) -> Span:
    """An invocation of an agent, by default in a trace with the name of the agent."""
    output = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": response}]}])
    named = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.output.messages": output,
        **(attributes or {}),
    }
    return span(
        agent,
        f"invoke_agent {agent}",
        named,
        trace=trace or agent,
        parent=parent,
        start=start,
        end=start + 1,
    )


def request(*spans: Span) -> Batch:
    body = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[one.proto for one in spans])])]
    ).SerializeToString()
    return Batch(Origin("", "grpc", "traces", "protobuf"), body, otlp.decode_traces(body).records)


def tool_of(agent: str, name: str = "look_up") -> Span:
    """A tool call in the invocation of `agent`."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": name,
    }
    return span(
        name, f"execute_tool {name}", attributes, trace=agent, parent=agent, start=0.2, end=0.4
    )
