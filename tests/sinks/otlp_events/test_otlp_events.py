"""`gen_ai.evaluation.result` events, from the sink to a backend over a real socket."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult

from pathgauge.collector import config
from pathgauge.collector.config import Config
from pathgauge.collector.config.sinks import build_sinks, check_sinks
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator, Result
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import decode_logs
from pathgauge.collector.core.references import Match
from pathgauge.collector.receivers.grpc import GrpcReceiver
from pathgauge.collector.sinks.otlp_events import sink as otlp_events
from pathgauge.collector.sinks.otlp_events.event import events_of, events_of_conversation
from pathgauge.collector.sinks.otlp_events.sink import OtlpEvents
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score
from support.backend import Backend, RecordingExporter
from support.certificates import Authority, write_weak
from support.intake import Intake
from support.running import until
from support.sink_harness import ANSWER, NOW, Answer

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TURN = ReferenceTurn()
REFERENCE = Reference("refund", (TURN,), version="abc")
MATCHED = Match(REFERENCE, TURN, 0)
SECRET = "my card is 4111"


def evaluation(answer: str = "0.25", match: Match = MATCHED, **fields: Any) -> Evaluation:
    known = {
        "agent": "planner",
        "agent_version": "v2",
        "conversation_id": "c-1",
        "final_response": answer,
        **fields,
    }
    return Evaluator((ANSWER,)).evaluate(Invocation(TRACE, SPAN, "test", **known), match)


def sent(*evaluations: Evaluation, **options: Any) -> list[ReadableLogRecord]:
    memory = RecordingExporter()
    sink = OtlpEvents(memory, InternalTelemetry(), **options)
    for one in evaluations:
        sink.publish(one, NOW)
    sink.close()
    return memory.records


def attributes(one: Evaluation, **options: Any) -> dict[str, Any]:
    (event,) = events_of(one, NOW, **options)
    return dict(event.attributes)


COMMON = {
    "gen_ai.agent.name": "planner",
    "gen_ai.agent.version": "v2",
    "gen_ai.conversation.id": "c-1",
    "gen_ai.evaluation.name": "answer",
    "pathgauge.scenario.id": "refund",
    "pathgauge.reference.version": "abc",
    "pathgauge.evaluation.revision": 0,
    "pathgauge.evaluation.threshold": 0.5,
    "pathgauge.scorer": "answer 1",
}


def test_an_event_links_to_the_page_of_its_result() -> None:
    [record] = sent(evaluation(), results_url="https://pathgauge.example")
    assert record.log_record.attributes is not None
    page = record.log_record.attributes["pathgauge.result.url"]
    assert page == f"https://pathgauge.example/results/{TRACE}/{SPAN}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("0.75", {"gen_ai.evaluation.score.value": 0.75, "gen_ai.evaluation.score.label": "pass"}),
        ("0.25", {"gen_ai.evaluation.score.value": 0.25, "gen_ai.evaluation.score.label": "fail"}),
        (
            "undefined",
            {
                "gen_ai.evaluation.score.label": "not_evaluated",
                "pathgauge.evaluation.reason": "undefined",
            },
        ),
        ("7", {"gen_ai.evaluation.score.label": "error", "error.type": "_OTHER"}),
    ],
)
def test_the_event_has_the_attributes_of_the_conventions(
    answer: str, expected: dict[str, Any]
) -> None:
    assert attributes(evaluation(answer)) == {**COMMON, **expected}


def test_a_threshold_is_a_double_also_if_it_is_written_as_a_whole_number() -> None:
    """A backend may refuse an attribute that is of another type than before."""
    whole = replace(ANSWER, threshold=1)
    one = Evaluator((whole,)).evaluate(evaluation().invocation, MATCHED)
    assert repr(attributes(one)["pathgauge.evaluation.threshold"]) == "1.0"


def test_a_scorer_that_raises_is_an_error_of_its_type_without_its_text() -> None:
    class Broken(Answer):
        def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
            raise LookupError(SECRET)

    broken = Evaluator((Criterion("answer", Broken(), 0.5),)).evaluate(
        evaluation().invocation, MATCHED
    )
    assert attributes(broken) == {
        **COMMON,
        "gen_ai.evaluation.score.label": "error",
        "error.type": "LookupError",
    }


def test_unknown_values_are_omitted() -> None:
    bare = evaluation(
        match=Match(unmatched="no_scenario_id"),
        agent=None,
        agent_version=None,
        conversation_id=None,
    )
    known = {
        key: value
        for key, value in COMMON.items()
        if "agent" not in key and "conversation" not in key
    }
    del known["pathgauge.scenario.id"], known["pathgauge.reference.version"]
    assert attributes(bare) == {
        **known,
        "gen_ai.evaluation.score.value": 0.25,
        "gen_ai.evaluation.score.label": "fail",
    }


@pytest.mark.parametrize("content", [False, True])
def test_explanations_are_sent_only_with_content(content: bool) -> None:
    quoting = Evaluation(
        evaluation(user_input=SECRET).invocation,
        MATCHED,
        (Result(ANSWER, Score(0.0, None, f"not in {SECRET!r}"), "failed"),),
        "idle",
    )
    (record,) = sent(quoting, content=content)
    answer = dict(record.log_record.attributes or {})
    assert answer.pop("gen_ai.evaluation.explanation", None) == (
        f"not in {SECRET!r}" if content else None
    )
    assert SECRET not in record.to_json().replace("explanation", "") or content
    assert (record.log_record.body, SECRET in str(answer)) == (None, False)


def test_hostile_names_are_cut_and_can_be_encoded() -> None:
    hostile = attributes(evaluation(agent="\ud800" + "x" * 10_000, agent_version="\x00"))
    assert (hostile["gen_ai.agent.name"], hostile["gen_ai.agent.version"]) == (
        "?" + "x" * 255,
        "\x00",
    )


def test_scores_of_a_conversation_have_no_span() -> None:
    memory = RecordingExporter()
    sink = OtlpEvents(memory, InternalTelemetry())
    sink.publish_conversation(
        ConversationResult(
            "acme", "c-1", REFERENCE, "planner", "v2", (ConversationScore(ANSWER, 1.0),), 2, 0, 0
        ),
        NOW,
    )
    sink.close()
    (record,) = memory.records
    expected = {
        key: value for key, value in COMMON.items() if "revision" not in key and "scorer" not in key
    }
    assert record.log_record.attributes == {
        **expected,
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.score.label": "pass",
        "pathgauge.tenant": "acme",
        "pathgauge.evaluation.level": "conversation",
    }
    assert (record.log_record.trace_id, record.log_record.span_id) == (0, 0)


def test_a_conversation_without_a_mean_says_why() -> None:
    case = ConversationResult(
        "", "c-1", REFERENCE, "planner", "v2", (ConversationScore(ANSWER, None),), 1, 1, 0
    )
    (event,) = events_of_conversation(case, NOW)
    assert {key: value for key, value in event.attributes.items() if "evaluation" in key} == {
        "gen_ai.evaluation.name": "answer",
        "gen_ai.evaluation.score.label": "not_evaluated",
        "pathgauge.evaluation.reason": "undefined",
        "pathgauge.evaluation.threshold": 0.5,
        "pathgauge.evaluation.level": "conversation",
    }


@pytest.mark.parametrize(
    ("judge", "answer"),
    [
        (
            "gpt-4.1-mini@1f3a9c20",
            {"pathgauge.judge.model": "gpt-4.1-mini", "pathgauge.judge.template": "1f3a9c20"},
        ),
        (
            "local:a@b@1f3a9c20",
            {"pathgauge.judge.model": "local:a@b", "pathgauge.judge.template": "1f3a9c20"},
        ),
    ],
)
def test_scores_of_a_judge_name_its_model_and_template(judge: str, answer: dict[str, str]) -> None:
    judged = replace(ANSWER, judge=judge)
    judged_evaluation = Evaluator((judged,)).evaluate(evaluation().invocation, MATCHED)
    assert (
        attributes(judged_evaluation).items() - attributes(evaluation()).items() == answer.items()
    )
    case = ConversationResult(
        "acme", "c-1", REFERENCE, "planner", "v2", (ConversationScore(judged, 1.0),), 2, 0, 0
    )
    (event,) = events_of_conversation(case, NOW)
    assert {key: value for key, value in event.attributes.items() if "judge" in key} == answer


def section(**otlp: Any) -> Config:
    return Config.model_validate({"exporters": {"otlp": otlp}})


def sink_of(settings: Config, telemetry: InternalTelemetry) -> OtlpEvents:
    sink = build_sinks(settings, telemetry)["otlp"]
    assert isinstance(sink, OtlpEvents)
    return sink


def test_a_backend_over_http_receives_events_of_the_evaluated_span() -> None:
    telemetry = InternalTelemetry()
    with Backend() as backend:
        sink = sink_of(
            section(endpoint=backend.url, protocol="http/protobuf", headers={"X-Tenant": "t"}),
            telemetry,
        )
        sink.publish(evaluation(), NOW)
        sink.close()
    (record,) = backend.records
    assert (record.trace_id.hex(), record.span_id.hex(), record.event_name) == (
        TRACE,
        SPAN,
        "gen_ai.evaluation.result",
    )
    assert (record.time_unix_nano, record.severity_number, record.body.WhichOneof("value")) == (
        int(NOW * 1e9),
        9,
        None,
    )
    (group,) = backend.requests[0].resource_logs
    resource = {pair.key: pair.value.string_value for pair in group.resource.attributes}
    assert (
        resource["service.name"],
        group.scope_logs[0].scope.name,
        backend.headers[0]["x-tenant"],
    ) == ("pathgauge", "pathgauge", "t")
    assert (telemetry.events_exported.total(), telemetry.events_dropped.total()) == (1, 0)
    decoded = decode_logs(backend.bodies[0])
    assert (decoded.records, decoded.own_events) == ((), 1)


async def test_a_backend_over_grpc_receives_events_and_pathgauge_ignores_its_own() -> None:
    intake, telemetry = Intake(), InternalTelemetry()
    receiver = GrpcReceiver("127.0.0.1:0", intake.accept, intake.telemetry)
    await receiver.start()
    sink = sink_of(
        section(
            endpoint=f"127.0.0.1:{receiver.port}", tls={"insecure": True}, headers={"X-Tenant": "t"}
        ),
        telemetry,
    )
    sink.publish(evaluation(), NOW)
    await asyncio.to_thread(sink.close)
    await receiver.stop(0)
    (batch,) = intake.batches
    assert (batch.logs, batch.own_events, telemetry.events_exported.total()) == ((), 1, 1)
    assert intake.telemetry.logs_dropped.items() == [(("no_trace_id",), 0), (("own_event",), 1)]
    assert intake.telemetry.accepted_logs.total() == intake.telemetry.logs_dropped.total()


def test_only_refused_events_are_dropped() -> None:
    telemetry = InternalTelemetry()
    with Backend() as backend:
        backend.status = 400
        sink = sink_of(section(endpoint=backend.url, protocol="http/protobuf"), telemetry)
        sink.publish(evaluation(), NOW)
        assert until(lambda: telemetry.events_dropped.get("failed")) == 1
        backend.status = 200
        sink.publish(evaluation(), NOW)
        sink.close()
    assert (
        len(backend.records),
        telemetry.events_exported.total(),
        telemetry.events_dropped.items(),
    ) == (1, 1, [(("failed",), 1)])


class Stuck(RecordingExporter):
    """An exporter that blocks until the test releases it."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.let = threading.Event()
        self.error = error

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self.let.wait(30)
        taken = super().export(batch)
        if self.error is not None:
            raise self.error
        return taken


def test_a_hanging_backend_blocks_nothing_and_the_queue_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp_events, "MAX_CLOSE_S", 0.05)
    monkeypatch.setattr(otlp_events, "MAX_BATCH_DELAY_S", 0.0)
    stuck, telemetry = Stuck(), InternalTelemetry()
    sink = OtlpEvents(stuck, telemetry, queue_size=3)
    sink.publish(evaluation(), NOW)
    assert until(lambda: sink.waiting == 0)
    for _ in range(10):
        sink.publish(evaluation(), NOW)
    assert (sink.waiting, telemetry.events_dropped.items()) == (3, [(("full",), 7)])
    sink.close()
    assert (sink.waiting, dict(telemetry.events_dropped.items())) == (
        0,
        {("full",): 7, ("shutdown",): 3},
    )
    stuck.let.set()


@pytest.mark.slow
def test_an_exporter_that_raises_is_used_again() -> None:
    stuck, telemetry = Stuck(RuntimeError("?")), InternalTelemetry()
    stuck.let.set()
    sink = OtlpEvents(stuck, telemetry)
    sink.publish(evaluation(), NOW)
    assert until(lambda: telemetry.events_dropped.get("failed")) == 1
    sink.publish(evaluation(), NOW)
    sink.close()
    assert (len(stuck.records), telemetry.events_dropped.items()) == (2, [(("failed",), 2)])


def test_events_after_close_are_counted() -> None:
    telemetry = InternalTelemetry()
    sink = OtlpEvents(RecordingExporter(), telemetry)
    sink.close()
    sink.publish(evaluation(), NOW)
    assert telemetry.events_dropped.items() == [(("shutdown",), 1)]


def test_a_revision_is_sent_with_its_number() -> None:
    memory = [
        dict(record.log_record.attributes or {})
        for record in sent(evaluation(), Evaluation(*_fields(revision=2)))
    ]
    assert [answer["pathgauge.evaluation.revision"] for answer in memory] == [0, 2]


def _fields(revision: int) -> tuple[Any, ...]:
    one = evaluation()
    return (
        one.invocation,
        one.match,
        (Result(Criterion("failure", Failure()), Score(0.0), "informational"),),
        "idle",
        revision,
    )


def test_an_unreadable_tls_file_stops_the_start() -> None:
    settings = section(endpoint="backend:4317", tls={"ca_file": "missing.pem"})
    with pytest.raises(
        ConfigError,
        match=r"^exporters\.otlp\.tls\.ca_file: found 'missing\.pem': No such file or directory$",
    ):
        check_sinks(settings)


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        (
            {"ca_file": "other.key"},
            "ca_file: found 'other.key', a file without a readable certificate, expected PEM",
        ),
        (
            {"cert_file": "empty", "key_file": "own.key"},
            "cert_file: found 'empty', a file without a readable certificate, expected PEM",
        ),
        (
            {"cert_file": "own.pem", "key_file": "other.key"},
            "key_file: found 'other.key', the key of another certificate, expected the key of"
            " own.pem in PEM, without a password",
        ),
        (
            {"cert_file": "own.pem", "key_file": "empty"},
            "key_file: found 'empty', a file without a readable key, expected the key of own.pem in"
            " PEM, without a password",
        ),
        (
            {"cert_file": "weak.pem", "key_file": "weak.key"},
            "cert_file: found 'weak.pem', a certificate that OpenSSL refuses, expected one with a"
            " stronger key and signature (EE_KEY_TOO_SMALL)",
        ),
    ],
)
def test_tls_files_that_no_connection_can_use_stop_the_start(
    tls: dict[str, str], problem: str, tmp_path: Path
) -> None:
    Authority().write_server(tmp_path, "own")
    Authority().write_server(tmp_path, "other")
    write_weak(tmp_path)
    (tmp_path / "empty").touch()
    file = tmp_path / "pathgauge.yaml"
    otlp = {"endpoint": "backend:4317", "tls": tls}
    file.write_text(json.dumps({"exporters": {"otlp": otlp}}))
    with pytest.raises(ConfigError) as raised:
        check_sinks(config.load(file))
    assert str(raised.value).partition("exporters.otlp.tls.")[2] == problem


@pytest.mark.parametrize(
    "own",
    ["127.0.0.1:4317", "localhost:4317", "http://127.0.0.1:4318", "[::1]:4318", "0.0.0.0:4317"],
)
def test_a_receiver_of_this_collector_is_refused_as_backend(own: str, tmp_path: Any) -> None:
    file = tmp_path / "pathgauge.yaml"
    file.write_text(f'exporters: {{otlp: {{endpoint: "{own}"}}}}')
    with pytest.raises(
        ConfigError,
        match=(
            r"exporters\.otlp\.endpoint: found .*, a receiver of this collector, expected"
            r" that of a"
        ),
    ):
        config.load(file)


@pytest.mark.parametrize("receiver", ["0.0.0.0:4317", "[::]:4317", "pathgauge.internal:4317"])
def test_a_receiver_on_all_addresses_is_refused_as_backend(receiver: str, tmp_path: Any) -> None:
    file = tmp_path / "pathgauge.yaml"
    target = "127.0.0.1:4317" if receiver[0] in "0[" else receiver
    file.write_text(
        f'receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "{receiver}"}}}}}}}}\nexporters:'
        f' {{otlp: {{endpoint: "{target}"}}}}'
    )
    with pytest.raises(ConfigError, match="a receiver of this collector"):
        config.load(file)


@pytest.mark.parametrize(
    "other", ["127.0.0.1:4319", "collector:4317", "https://otlp.example.org:443"]
)
def test_other_endpoints_are_accepted_as_backends(other: str, tmp_path: Any) -> None:
    file = tmp_path / "pathgauge.yaml"
    file.write_text(f'exporters: {{otlp: {{endpoint: "{other}"}}}}')
    assert "otlp" in config.load(file).exporters.sinks
