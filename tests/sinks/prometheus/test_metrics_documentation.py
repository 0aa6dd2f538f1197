"""`docs/metrics.md` lists exactly the series of `/metrics`, with their types and labels."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
from prometheus_client import generate_latest
from prometheus_client.registry import Collector

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import resolve
from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.core.agent_records import AgentRecords
from pathgauge.collector.core.evaluations.aggregation import Aggregation
from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator, Result
from pathgauge.collector.core.evaluations.scorer_watch import ScorerWatch
from pathgauge.collector.core.evidence.possible_categories import possible_categories
from pathgauge.collector.core.feedback.kappa import Table
from pathgauge.collector.core.feedback.pairs import CriterionKey, Pairs
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.core.usage import PipelineUsage
from pathgauge.collector.receivers.auth.certificate_expiry import CertificateExpiry
from pathgauge.collector.receivers.auth.tls import ServerTls, TlsPaths
from pathgauge.collector.receivers.kafka.producer import KafkaLog
from pathgauge.collector.receivers.kafka.records import Skip
from pathgauge.collector.service.canary import Canary
from pathgauge.collector.service.cluster.gauge_role import GaugeRole
from pathgauge.collector.service.cluster.metrics import ClusterMetrics, ProcessSeries
from pathgauge.collector.service.cluster.partition_scorers import PartitionScorers
from pathgauge.collector.service.gauge import Gauge
from pathgauge.collector.service.process_limits import fit_to_process
from pathgauge.collector.service.workers import messages
from pathgauge.collector.service.workers.scorer_process import ScorerProcess
from pathgauge.collector.service.workers.usage import FleetUsage
from pathgauge.collector.sinks.prometheus.agreement_gauges import AgreementGauges
from pathgauge.collector.sinks.prometheus.evaluation_metrics import REASONS
from pathgauge.collector.sinks.prometheus.judge_metrics import SHADOW, JudgeSeries
from pathgauge.collector.sinks.prometheus.labels import TenantLabel
from pathgauge.collector.sinks.prometheus.live_metrics import Live
from pathgauge.collector.sinks.prometheus.scoring_time import ScoringTime
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.sinks.prometheus.store_metrics import (
    CollectorUsage,
    StoreGauges,
    commit_durations,
)
from pathgauge.collector.store import Usage
from pathgauge.collector.store.postgres.gauge import GaugeDatabase
from pathgauge.collector.store.postgres.sharing import SharedCleaning
from pathgauge.scorers.authoring.builders import expected_calls, tool_calls
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score
from support.certificates import Authority
from support.repository import DOCS
from support.sink_harness import Answer, Seconds, SinkHarness

PAGE = (DOCS / "metrics.md").read_text()
JUDGES = (DOCS / "judges.md").read_text()
ROW = re.compile(r"^\| `(pathgauge_\w+)` \| (\w+) \| (.*?) \| (.+) \|$", re.MULTILINE)
QUERY = re.compile(r"^```promql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_NAME = re.compile(r"\bpathgauge_\w+")


class Series(NamedTuple):
    kind: str
    labels: frozenset[str]


def documented() -> dict[str, Series]:
    return {
        name: Series(kind, frozenset(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels, _ in ROW.findall(PAGE)
    }


def exported(folder: Path) -> dict[str, Series]:
    """All metric families of a service, by the name that queries use."""
    failure = Criterion("failure", Failure(), 0.5, 0.9, judge="model@template")
    evaluator = Evaluator((failure, Criterion("f1", ToolTrajectoryF1())))
    over_agent = Aggregation("agent")
    aggregated = replace(failure, name="mean_failure", objective=None, aggregation=over_agent)
    evaluator.criteria += (aggregated,)
    telemetry = InternalTelemetry()
    expected = ReferenceSet([Reference("s1", (ReferenceTurn(),), expected_interval=60.0)])
    sink = PrometheusSink(
        evaluator,
        expected,
        telemetry,
        queues={"spans": Queue(lambda: 0, lambda: 1)},
        clock=lambda: 0.0,
        drift=Drift(),
    )
    invocation = Invocation(
        "1",
        "2",
        "test",
        agent="support",
        agent_version="v1",
        input_tokens=1,
        output_tokens=1,
        start_ns=1,
        end_ns=2,
    )
    turn = ReferenceTurn(tool_calls=())
    scored, compared, summed = evaluator.evaluate(
        invocation, Match(Reference("s1", (turn,)), turn, 0)
    ).results
    agreeing = Result(
        failure, Score(1.0, details={"judge": {"samples": 3, "agreement": 1.0}}), "passed"
    )
    not_evaluated = Result(scored.criterion, Score.not_evaluated("undefined"), "not_evaluated")
    sink.publish(
        Evaluation(
            invocation,
            Match(unmatched="no_scenario_id"),
            (scored, compared, summed, agreeing, not_evaluated),
            "idle",
        ),
        0.0,
    )
    for number in range(40):
        again = replace(
            invocation, trace_id=f"{number}", agent_version="v1" if number < 20 else "v2"
        )
        sink.publish(
            Evaluation(again, Match(unmatched="no_scenario_id"), (scored, summed), "idle"),
            float(number),
        )
    reference = Reference("s1", (ReferenceTurn(), ReferenceTurn()))
    sink.publish_conversation(
        ConversationResult(
            "",
            "c",
            reference,
            None,
            None,
            (ConversationScore(evaluator.criteria[0], 1.0),),
            2,
            0,
            0,
        ),
        0.0,
    )
    for counter in telemetry:
        counter.add(*counter.labels)
    watched = StoreGauges(lambda: CollectorUsage(Usage(), PipelineUsage(), 0, 0, 0.0))
    judges = JudgeSeries(["model"], lambda: [("hour", "calls", 1.0)], lambda: [("model", False)])
    shadows = JudgeSeries(
        ["model"], lambda: [("hour", "calls", 1.0)], lambda: [("model", False)], SHADOW
    )
    agreement = AgreementGauges(TenantLabel(), 0.4, 20)
    key = CriterionKey("", "quality", "model@template")
    agreement.set(Pairs({key: Table(1, 1, 1, 1)}))
    times = ScorerWatch(), ScorerWatch()
    for watch in times:
        watch.expect(["quality"])
    parts = (
        *(Live([commit_durations()]), watched, Canary(30.0, 60.0), judges, shadows, agreement),
        ScoringTime(*times),
    )
    for collector in parts:
        sink.registry.register(collector)
    Authority().write_server(folder)
    tls = ServerTls(TlsPaths(folder / "server.pem", folder / "server.key"))
    certificates = series_of(CertificateExpiry({"http": tls}, ()))
    return series_of(sink.registry) | certificates | exported_when_scaled_out()


def exported_when_scaled_out() -> dict[str, Series]:
    """The families of the parent of scorer processes, and of a process with all roles of a cluster.
    Nothing is started.
    """
    start = messages.Start(Config(), "0", Path("0"), 0, 1, 0)
    fleet = FleetUsage([ScorerProcess(lambda: start, 0, nothing_told)], Usage, list)
    telemetry = InternalTelemetry()
    plan = fit_to_process(Config(), telemetry).plan
    scorers = PartitionScorers(plan, resolve(Config()), "", 1, lambda kind, seconds: None)
    database = GaugeDatabase("", SharedCleaning())
    role = GaugeRole(database, telemetry, no_gauge, nothing_decoded)
    log = KafkaLog(Kafka(client={"bootstrap.servers": "127.0.0.1:1"}), telemetry, 1 << 20)
    try:
        return (
            series_of(fleet)
            | series_of(ProcessSeries(telemetry, lambda: 0, role))
            | series_of(ClusterMetrics(scorers, lambda: {0: 1}, log))
        )
    finally:
        log.close()


async def nothing_told(scorer: ScorerProcess, message: object) -> None:
    raise NotImplementedError


def no_gauge(telemetry: InternalTelemetry, records: AgentRecords) -> Gauge:
    raise NotImplementedError


def nothing_decoded(body: bytes) -> Publication:
    raise NotImplementedError


def series_of(collector: Collector) -> dict[str, Series]:
    """The families of pathgauge, by the name that queries use. Some have labels but no samples."""
    suffix = {"counter": "_total", "info": "_info"}
    return {
        family.name + suffix.get(family.type, ""): Series(
            family.type,
            frozenset(label for s in family.samples for label in s.labels).union(
                getattr(family, "_labelnames", ())
            )
            - {"le"},
        )
        for family in collector.collect()
        if family.name.startswith("pathgauge_")
    }


def test_every_series_is_documented_with_its_type_and_labels_and_no_other(tmp_path: Path) -> None:
    assert documented() == exported(tmp_path)


def test_all_reasons_are_documented() -> None:
    section = PAGE.partition("### Reasons")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == REASONS


def test_the_reasons_for_skipped_records_are_documented() -> None:
    section = PAGE.partition("### Skipped records")[2].partition("\n### ")[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == set(get_args(Skip))


def test_the_counters_that_start_at_0_in_every_process_are_listed() -> None:
    section = PAGE.partition("\n## Restarts\n")[2].partition("\n## ")[0]
    assert set(ANY_NAME.findall(section)) == {
        f"pathgauge_{counter.name}_total" for counter in InternalTelemetry() if counter.local
    }


def test_the_pages_and_their_queries_name_only_existing_series() -> None:
    families = documented()
    histograms = {
        name + suffix
        for name, series in families.items()
        if series.kind == "histogram"
        for suffix in ("_bucket", "_sum", "_count")
    }
    assert QUERY.search(PAGE)
    named = ANY_NAME.findall(
        PAGE + JUDGES + re.sub(r"pathgauge_\w+_\*", "", (DOCS / "operations.md").read_text())
    )
    assert set(named) <= set(families) | histograms


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is not on PATH, so the queries were not parsed",
)
def test_prometheus_can_parse_the_queries(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{number}", "expr": query}
        for number, query in enumerate(QUERY.findall(PAGE + JUDGES))
    ]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    checked = subprocess.run(
        ["promtool", "check", "rules", file], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


GRADED = Criterion("answer", Answer(), 0.5)
ROWS = {
    "a criterion with a threshold and scores between 0 and 1": GRADED,
    "a criterion with a threshold and scores that are 0 or 1": Criterion("failure", Failure(), 0.5),
    "a criterion with a threshold and no upper limit, such as seconds": Criterion(
        "seconds", Seconds(), 3.0
    ),
    "a criterion without a threshold, with scores between 0 and 1": Criterion("answer", Answer()),
}


def series_of_a_scenario(*criteria: Criterion) -> int:
    """How many series a scenario adds to those of another one."""
    turns = (ReferenceTurn(tool_calls=expected_calls("look")),)
    harness = SinkHarness(
        *criteria, references=ReferenceSet(Reference(name, turns) for name in ("first", "second"))
    )

    def publish(scenario: str) -> int:
        harness.publish(scenario_id=scenario, tool_calls=tool_calls("look"))
        lines = generate_latest(harness.sink.registry).decode().splitlines()
        return sum(line.startswith("pathgauge_") for line in lines)

    first = publish("first")
    return publish("second") - first


def test_the_series_of_a_scenario_are_as_many_as_documented() -> None:
    section = PAGE.partition("### Series per scenario")[2].partition("\n### ")[0]
    rows = {
        what: int(n) for what, n in re.findall(r"^\| (.*?) \| (\d+) \|$", section, re.MULTILINE)
    }
    scenario = rows[
        "the scenario itself: failures by errors of the agent or a tool, last evaluation"
    ]
    category = rows["each other category of failures that its criteria can have"]
    for what, criterion in ROWS.items():
        others = 1
        if criterion.threshold is not None:
            categories = possible_categories(criterion.scorer) - {"error", "tool_error"}
            others = scenario + category * len(categories)
        assert (what, series_of_a_scenario(criterion)) == (what, rows[what] + others)
    f1 = Criterion("f1", ToolTrajectoryF1(), 0.5)
    calls = rows["more for each trajectory metric: its calls"]
    assert (
        series_of_a_scenario(GRADED, f1) - series_of_a_scenario(GRADED)
        == calls
        + rows["once, with a criterion that needs a reference: failures by deviations of calls"]
        + rows["a criterion with a threshold and scores between 0 and 1"]
    )
    five = [replace(GRADED, name=f"answer {number}") for number in range(5)]
    assert f"has {series_of_a_scenario(*five)} series" in section
