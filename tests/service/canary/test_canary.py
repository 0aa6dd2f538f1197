"""The canary: a trace that the collector sends to itself over its own socket, and whose score it
waits for.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from pathgauge.collector.config import Protocols
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    EvaluationKey,
    Evaluator,
)
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import decode_traces
from pathgauge.collector.core.otlp.batch import Origin
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.receivers.auth.tenants import Credentials, Tenants, anonymous
from pathgauge.collector.receivers.export import ExportService, ReceiverLimits
from pathgauge.collector.receivers.grpc import GrpcReceiver
from pathgauge.collector.receivers.http import HttpReceiver
from pathgauge.collector.service.canary import (
    AGENT,
    TENANT,
    Canary,
    Send,
    WithoutCanary,
    export_request,
    over_socket,
    within,
)
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.tool_use.errors import ToolErrorRate
from pathgauge.scorers.types import Invocation, Reference
from support.dialects import INSTALLED
from support.intake import Intake
from support.running import PATIENCE_S, Collector, until

QUICK = {"settle": "100ms", "idle": "200ms", "max_age": "5s"}


class RecordingSink:
    """A sink that records what is published."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def publish(self, evaluation: Evaluation, now: float) -> None:
        self.calls.append(evaluation)

    def publish_judged(self, judged: Judged, now: float) -> None:
        pass

    def publish_conversation(self, case: ConversationResult, now: float) -> None:
        self.calls.append(case)

    def withdraw(self, key: EvaluationKey) -> None:
        self.calls.append(key)

    def close(self) -> None:
        self.calls.append("closed")


def evaluation(tenant: str, trace_id: str = "aa") -> Evaluation:
    return Evaluation(
        Invocation(trace_id, "bb", "genai", tenant=tenant),
        Match(unmatched="no_scenario_id"),
        (),
        "root_ended",
    )


def values(canary: Canary) -> dict[str, float]:
    """The samples of the canary, without histogram buckets."""
    registry = CollectorRegistry()
    registry.register(canary)
    samples = [
        sample
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    ]
    return {
        sample.labels.get("outcome", sample.name.removeprefix("pathgauge_canary_")): sample.value
        for sample in samples
    }


@asynccontextmanager
async def flying(canary: Canary, send: Send) -> AsyncIterator[None]:
    task = asyncio.create_task(canary.run(send))
    yield
    task.cancel()
    await asyncio.wait([task])


async def eventually(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not check():
            await asyncio.sleep(0.005)


def trace_id_of(request: bytes) -> str:
    return (
        ExportTraceServiceRequest.FromString(request)
        .resource_spans[0]
        .scope_spans[0]
        .spans[0]
        .trace_id.hex()
    )


async def test_a_canary_that_is_scored_counts_with_its_delay() -> None:
    canary = Canary(interval=60.0, max_delay=10.0)

    async def score(request: bytes) -> None:
        canary.publish(evaluation("", trace_id_of(request)), 0.0)
        canary.publish(evaluation(TENANT, "another one"), 0.0)
        await asyncio.to_thread(canary.publish, evaluation(TENANT, trace_id_of(request)), 0.0)
        canary.publish(evaluation(TENANT, trace_id_of(request)), 0.0)

    assert values(canary) == {
        "ok": 0,
        "lost": 0,
        "refused": 0,
        "delay_seconds_count": 0,
        "delay_seconds_sum": 0,
    }
    async with flying(canary, score):
        await eventually(lambda: values(canary)["ok"] == 1)
    found = values(canary)
    assert 0 < found.pop("delay_seconds_sum") < 10
    assert found.pop("last_success_timestamp_seconds") > 1_700_000_000
    assert found == {"ok": 1, "lost": 0, "refused": 0, "delay_seconds_count": 1}


async def test_a_canary_without_a_score_is_lost() -> None:
    canary = Canary(interval=60.0, max_delay=0.01)

    async def swallow(request: bytes) -> None:
        canary.publish(evaluation("another tenant", trace_id_of(request)), 0.0)

    with capture_logs() as logs:
        async with flying(canary, swallow):
            await eventually(lambda: values(canary)["lost"] == 1)
    assert values(canary) == {
        "ok": 0,
        "lost": 1,
        "refused": 0,
        "delay_seconds_count": 0,
        "delay_seconds_sum": 0,
    }
    assert [(line["event"], line["log_level"]) for line in logs] == [
        ("canary lost: it was acknowledged, but has no score", "error")
    ]


async def test_in_a_cluster_senders_count_what_is_acknowledged_and_the_gauge_what_has_a_score() -> (
    None
):
    sender = Canary(interval=0.001, max_delay=10.0, shared=True)
    answers = iter(["429 Too Many Requests", None])

    async def send(request: bytes) -> str | None:
        return next(answers, "closed")

    with capture_logs():
        async with flying(sender, send):
            await eventually(lambda: values(sender)["refused"] >= 2)
    found = values(sender)
    assert (found["ok"], found["acknowledged"]) == (0, 1)

    gauge = Canary(interval=60.0, max_delay=10.0, shared=True)
    now = 1_700_000_000.0
    for age in (2, 3, 11):
        sent = evaluation(TENANT, f"sent {age} s ago")
        start = replace(sent.invocation, start_ns=int((now - age) * 1e9))
        gauge.publish(replace(sent, invocation=start), now)
    assert (values(gauge)["ok"], values(gauge)["delay_seconds_sum"]) == (2, 5)


async def test_a_canary_that_is_not_acknowledged_is_refused_and_the_next_one_is_sent() -> None:
    canary, answers = Canary(interval=0.01, max_delay=10.0), iter(["429 Too Many Requests"])

    async def refuse(_: bytes) -> str | None:
        return next(answers)  # and nothing at all after that

    with capture_logs() as logs:
        async with flying(canary, refuse):
            await eventually(lambda: values(canary)["refused"] >= 2)
    assert [(line["event"], line.get("reason")) for line in logs[:2]] == [
        ("canary refused", "429 Too Many Requests"),
        ("canary could not be sent", None),
    ]


@pytest.mark.parametrize("shared", [False, True])
async def test_an_outage_is_logged_once_and_so_is_its_end(*, shared: bool) -> None:
    canary, sent = Canary(interval=0.001, max_delay=10.0, shared=shared), count()

    async def send(_: bytes) -> str | None:
        number = next(sent)
        if number in (1, 4):
            raise ConnectionError
        return "503 Service Unavailable" if number in (0, 2, 3, 6, 7) else None

    with capture_logs() as logs:
        async with flying(canary, send):
            await eventually(lambda: values(canary)["refused"] == 7 and len(logs) == 5)
    assert [(line["event"], line["log_level"]) for line in logs] == [
        ("canary refused", "warning"),
        ("canary could not be sent", "error"),
        ("canary acknowledged again", "info"),
        ("canary refused", "warning"),
        ("canary acknowledged again", "info"),
    ]
    assert values(canary)["refused"] == 7


def test_only_the_token_makes_a_canary() -> None:
    authenticate = Canary(30.0, 60.0).authenticate(anonymous)
    canary = Canary(30.0, 60.0)
    right, others = (
        f"Bearer {canary.token}",
        ("", "Bearer x", "Bearer \udcff", f"Basic {canary.token}"),
    )
    assert canary.authenticate(anonymous)(Credentials((right,))) == TENANT
    assert [canary.authenticate(anonymous)(Credentials((other,))) for other in others] == [""] * 4
    assert (authenticate(Credentials((right,))), authenticate(Credentials())) == ("", "")


def test_sinks_are_told_of_everything_but_canaries() -> None:
    recorder, case = (
        RecordingSink(),
        ConversationResult("", "c", Reference("s", ()), None, None, (), 0, 0, 0),
    )
    sink = WithoutCanary("recorder", recorder)
    mine = evaluation("")
    for one in (mine, evaluation(TENANT)):
        sink.publish(one, 0.0)
        sink.publish_conversation(replace(case, tenant=one.key[0]), 0.0)
        sink.withdraw(one.key)
    sink.close()
    assert recorder.calls == [mine, case, mine.key, "closed"]


class Listening(Intake):
    """An OTLP receiver with tokens and without TLS, and a canary that is sent to it."""

    def __init__(self, protocol: Literal["grpc", "http"], canary: Canary) -> None:
        super().__init__()
        authenticate = canary.authenticate(Tenants({}, {}).authenticate)
        self.receiver: GrpcReceiver | HttpReceiver
        if protocol == "grpc":
            self.receiver = GrpcReceiver(
                "127.0.0.1:0", self.accept, self.telemetry, authenticate=authenticate
            )
        else:
            self.receiver = HttpReceiver(
                "127.0.0.1:0", self.accept, self.telemetry, authenticate=authenticate
            )
        sections = {"grpc": None, "http": None, protocol: {"endpoint": "0.0.0.0:0"}}
        self.protocols = Protocols.model_validate(
            {name: False if section is None else section for name, section in sections.items()}
        )
        self.protocol = protocol

    async def send(self, request: bytes, token: str) -> str:
        way = over_socket(self.protocols, {self.protocol: self.receiver.port}, token)
        assert way is not None
        return await way(request) or "acknowledged"


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_canaries_go_through_the_socket_with_their_token(
    protocol: Literal["grpc", "http"],
) -> None:
    canary, request = Canary(30.0, 60.0), export_request(bytes(range(16)))
    listening = Listening(protocol, canary)
    await listening.receiver.start()
    answers = [
        await listening.send(request, canary.token),
        await listening.send(request, "another token"),
    ]
    listening.answer = False
    answers.append(await listening.send(request, canary.token))
    await listening.receiver.stop(0.0)
    answers.append(await listening.send(request, canary.token))
    words = {
        "grpc": ("UNAUTHENTICATED:", "UNAVAILABLE:", "UNAVAILABLE:"),
        "http": ("401", "429", "[Errno"),
    }[protocol]
    assert [answer.split(" ")[0] for answer in answers] == ["acknowledged", *words]
    [batch] = listening.batches
    assert (batch.origin, batch.body) == (Origin(TENANT, protocol, "traces", "protobuf"), request)


async def test_where_every_socket_speaks_tls_canaries_are_handed_to_the_receiver_behind_it() -> (
    None
):
    tls = {"tls": {"cert_file": "server.pem", "key_file": "server.key"}}
    ports = {"grpc": 1, "http": 2}
    assert over_socket(Protocols.model_validate({"grpc": tls, "http": tls}), ports, "token") is None
    assert over_socket(Protocols.model_validate({"grpc": tls}), ports, "token") is not None
    intake = Intake()
    send = within(ExportService("grpc", intake.accept, intake.telemetry, ReceiverLimits()), TENANT)
    assert await send(export_request(bytes(range(16)))) is None
    assert [batch.origin for batch in intake.batches] == [
        Origin(TENANT, "grpc", "traces", "protobuf")
    ]
    intake.answer = False
    assert (await send(export_request(bytes(range(16)))) or "").startswith("busy: ")


def test_a_canary_is_an_agent_that_called_a_tool_and_has_no_content() -> None:
    [spans] = (
        ExportTraceServiceRequest.FromString(export_request(bytes(range(16))))
        .resource_spans[0]
        .scope_spans[0]
        .spans,
    )
    attributes = [{pair.key: pair.value.string_value for pair in span.attributes} for span in spans]
    assert attributes == [
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": AGENT},
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "canary"},
    ]


def test_a_canary_is_nobodys_invocation() -> None:
    """It has no content, which says nothing about agents of its dialect."""
    telemetry = InternalTelemetry()
    pipeline = Pipeline(
        INSTALLED,
        Evaluator((Criterion("failure", Failure()), Criterion("errors", ToolErrorRate()))),
        ReferenceSet(),
        telemetry,
        synthetic_tenants=frozenset({TENANT}),
    )
    sent = decode_traces(export_request(secrets.token_bytes(16))).records
    canary = [Span(one.raw, one.resource, one.scope, TENANT) for one in sent]
    [evaluation] = [*pipeline.feed(canary, (), 0.0), *pipeline.expire(60.0)]
    assert isinstance(evaluation, Evaluation)
    assert evaluation.invocation.flags == {"content_missing"}
    assert {
        counter.name: counter.items()
        for counter in telemetry
        if counter.name.startswith("invocation") and counter.total()
    } == {
        "invocations_read": [(("synthetic",), 1)],
        "invocations_skipped": [(("synthetic",), 1)],
    }
    assert pipeline.records.pending() == []


@pytest.mark.slow
def test_a_running_collector_scores_its_canaries_and_shows_them_nowhere_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "token").write_text("token-of-team-a-0123")
    settings: dict[str, Any] = {
        "canary": {"interval": "1s"},
        "auth": {"tenants": {"team-a": {"token_file": "token"}}},
        "assembly": QUICK,
        "store": {"path": "data"},
    }
    for start in range(2):
        with Collector(tmp_path, **settings) as collector:
            assert until(
                lambda: collector.value("pathgauge_canary_traces_total", outcome="ok") >= 1
            ), collector.log()
            page = collector.get("/metrics")[1]
            assert (
                AGENT in page,
                TENANT in page,
                collector.value("pathgauge_invocations_total"),
            ) == (False, False, 0)
            assert (
                collector.value("pathgauge_canary_last_success_timestamp_seconds") > 1_700_000_000
            )
            assert collector.series(
                "pathgauge_receiver_requests_total", "transport", "code"
            ).keys() == {("grpc", "ok")}
            read = collector.series("pathgauge_invocations_read_total", "dialect")
            assert read.keys() == {("synthetic",)}
            assert read["synthetic",] >= 1 + start
            assert collector.series("pathgauge_invocation_flags_total", "flag") == {}
        assert collector.stop() == 0
