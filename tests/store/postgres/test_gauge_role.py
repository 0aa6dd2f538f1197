"""Which process is the gauge, what a standby says, and what is published by nobody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import psycopg
import pytest
from prometheus_client import Metric
from structlog.testing import capture_logs

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig, resolve
from pathgauge.collector.core.agent_records import AgentRecords
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import (
    Evaluation,
    EvaluationKey,
    Evaluator,
)
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.usage import PipelineUsage
from pathgauge.collector.service.cluster import gauge_role
from pathgauge.collector.service.cluster.gauge_role import Build, GaugeRole
from pathgauge.collector.service.cluster.metrics import ProcessSeries
from pathgauge.collector.service.gauge import Gauge
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.sinks.prometheus.traffic.recording import MAX_ROWS
from pathgauge.collector.store import Selection, Usage, publications
from pathgauge.collector.store.postgres.gauge import GaugeDatabase
from pathgauge.collector.store.postgres.purge import purge
from pathgauge.collector.store.postgres.sharing import SharedCleaning
from pathgauge.scorers.types import Invocation
from support.evaluated import evaluation
from support.postgres import Server
from support.running import PATIENCE_S, until
from support.shared_database import cut_connections, gauge, rows, scorer, step

SETUP = resolve(Config())


def build(telemetry: InternalTelemetry, records: AgentRecords) -> Gauge:
    usage = CollectorUsage(Usage(), PipelineUsage(), 0, 0, 0.0)
    return Gauge(Config(), SETUP, telemetry, None, usage=lambda: usage, queues={}, records=records)


def decode(body: bytes) -> Publication:
    return publications.decode(body, SETUP.evaluator, SETUP.references)


@contextmanager
def process(address: str, build: Build = build) -> Iterator[GaugeRole]:
    """A process with the role of the gauge."""
    role = GaugeRole(GaugeDatabase(address, SharedCleaning()), InternalTelemetry(), build, decode)
    role.start()
    try:
        yield role
    finally:
        assert role.stop(PATIENCE_S)


def published(address: str, *spans: bytes | int, partition: int = 0) -> None:
    """Publish these, or that so many spans were counted."""
    with scorer(address, partition) as database:
        for row, one in enumerate(spans, 1):
            body = one
            if isinstance(body, int):
                counts = [Row(("spans_assembled",), (body,))]
                body = publications.encode(Publication(0.0, [], counts))
            assert database.commit(step(row, publication=body))


def counted(role: GaugeRole) -> int:
    return role.counted.spans_assembled.total()


def unread(address: str) -> int:
    return int(rows(address, "SELECT count(*) FROM publications")[0][0])


def test_a_standby_is_ready_and_says_what_it_is(address: str) -> None:
    with process(address) as first:
        assert until(lambda: first.gauge is not None)
        with process(address) as second:
            published(address, 3)
            assert until(lambda: counted(first) == 3)
            assert (first.unready(), first.inactive()) == ([], [])
            assert (second.unready(), second.inactive()) == (
                [],
                ["standby: this process is not the gauge"],
            )


def test_a_standby_knows_what_the_gauge_has_not_read(address: str) -> None:
    with gauge(address) as hanging:
        assert hanging.try_acquire()
        began = time.time()
        published(address, 1, 2)
        with process(address) as standby:
            assert until(lambda: standby.unread.number == 2)
            assert standby.unread.oldest_at == pytest.approx(began, abs=60)


def test_a_gauge_is_ready_again_after_postgresql_was_away(address: str) -> None:
    with process(address) as role:
        assert until(lambda: role.gauge is not None)
        assert cut_connections(address) > 0
        assert until(lambda: role.takeovers >= 2)
        assert until(lambda: role.gauge is not None and not role.unready())


def test_a_gauge_whose_database_does_not_answer_is_not_ready(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gauge_role, "SILENT_S", 1.0)
    with process(address) as role, psycopg.connect(address) as other:
        assert until(lambda: role.gauge is not None)
        assert (role.unready(), role.stuck()) == ([], [])
        other.execute("LOCK TABLE publications IN ACCESS EXCLUSIVE MODE")
        [reason] = until(role.unready)
        assert reason.startswith("PostgreSQL has not answered for ")
        assert role.stuck() != []
        other.commit()
        assert until(lambda: not role.unready())


def test_a_process_without_its_database_is_not_the_gauge(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gauge_role, "STANDBY_S", 3600.0)  # it does not ask again
    with process(address) as role:
        assert until(lambda: role.gauge is not None)
        assert cut_connections(address) > 0
        assert until(role.unready)
        assert until(role.inactive)


def test_a_scrape_during_a_takeover_shows_the_process_before_or_after_it(address: str) -> None:
    with gauge(address) as other:
        assert other.try_acquire()
        with process(address) as role:
            series = ProcessSeries(InternalTelemetry(), lambda: 0, role)
            as_standby = series.collect()
            assert active(next(as_standby)) == 0
            other.close()
            assert until(lambda: role.gauge is not None)
            gauge_then = role.gauge
            as_gauge = series.collect()
            assert active(next(as_gauge)) == 1
            assert "pathgauge_invocations" not in {family.name for family in as_standby}
            assert cut_connections(address) > 0
            assert until(lambda: role.gauge is not gauge_then)
            assert "pathgauge_invocations" in {family.name for family in as_gauge}


def active(family: Metric) -> float:
    [sample] = family.samples
    assert sample.name == "pathgauge_gauge_active"
    return sample.value


def test_what_only_another_version_can_read_is_kept_and_counted_by_nobody(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gauge_role, "REFUSED_S", 0.2)
    later = bytes([publications.FORMAT + 9])
    published(address, 1, later, 2)
    with capture_logs() as lines, process(address) as role:
        assert until(role.unready)
        [reason] = role.unready()
        refused = {"event": "publication refused", "log_level": "error", "partition": "0"}
        assert refused | {"reason": reason} in lines
        assert f"format {publications.FORMAT + 9}, expected {publications.FORMAT}" in reason
        assert until(lambda: unread(address) == 2)  # what came before is counted
        published(address, 4, partition=1)
        assert until(lambda: unread(address) == 2)
        assert role.unready() == [reason]
        # The other version reads it.
        rows(address, "DELETE FROM publications WHERE body = %s", later)
        assert until(lambda: role.gauge is not None and not role.unready())
        assert until(lambda: counted(role) == 1 + 2 + 4)


def test_an_outage_is_reported_once_with_its_end_by_gauge_and_standby(
    postgres: Server, address: str
) -> None:
    with capture_logs() as lines, process(address) as one, process(address) as other:
        assert until(lambda: one.gauge is not None or other.gauge is not None)
        postgres.kill()
        assert until(lambda: one.unready() and other.unready())
        postgres.start()
        assert until(lambda: not one.unready() and not other.unready())
    told = [line["event"] for line in lines if "PostgreSQL" in line["event"]]
    lost, found = "the gauge cannot use PostgreSQL; trying again", "PostgreSQL can be used again"
    assert sorted(told) == [found, found, lost, lost]


def test_what_was_learned_about_tool_calls_is_kept_by_the_next_gauge(address: str) -> None:
    agents = {f"agent{number}" for number in range(MAX_ROWS + 1)}
    without = Match(unmatched="no_scenario_id")
    runs = [Invocation("a" * 32, agent[-1] * 16, "test", agent=agent) for agent in agents]
    events = [SETUP.evaluator.evaluate(one, without) for one in runs]
    published(address, publications.encode(Publication(time.time(), events)))
    for _ in range(2):
        with process(address) as role:
            assert until(lambda: learned(role).keys() == agents)
            assert set(learned(role).values()) == {1}


def test_a_standby_that_was_reloaded_takes_over_with_its_present_criteria_alone(
    address: str,
) -> None:
    run = evaluation("run")
    judged = ReferenceSet([run.match.reference] if run.match.reference else [])
    present = replace(
        SETUP, evaluator=Evaluator(tuple(one.criterion for one in run.results)), references=judged
    )
    without = replace(SETUP, evaluator=Evaluator(()))

    def build_present(telemetry: InternalTelemetry, records: AgentRecords) -> Gauge:
        built = build(telemetry, records)
        built.configure(present, Config().exporters.prometheus)
        return built

    published(address, publications.encode(Publication(time.time(), [run])))
    with process(address, build_present) as first:
        assert until(lambda: drifting(first) == ["trajectory"])
        with process(address, build_present) as standby:
            for setup in (without, present):
                standby.call(partial(configure, setup))
            assert first.stop(PATIENCE_S)
            assert until(lambda: standby.gauge is not None)
            standby.call(lambda gauge: None).result(PATIENCE_S)
            assert drifting(standby) == ["trajectory"]


def test_a_standby_whose_last_reload_failed_says_so_when_it_takes_over(address: str) -> None:
    with gauge(address) as other:
        assert other.try_acquire()
        with process(address) as standby:
            standby.call(partial(configure, SETUP))
            standby.call(lambda gauge: gauge.configure_failed())
            other.close()
            assert until(lambda: standby.gauge is not None)
            standby.call(lambda gauge: None).result(PATIENCE_S)
            assert standby.gauge is not None
            found = {
                family.name: family.samples[0].value
                for family in standby.gauge.registry.collect()
                if family.samples
            }
            assert found["pathgauge_config_last_reload_successful"] == 0


def configure(setup: ActiveConfig, gauge: Gauge) -> None:
    """Apply a reload."""
    gauge.configure(setup, Config().exporters.prometheus)


def drifting(role: GaugeRole) -> list[str]:
    """The metrics whose scores are compared."""
    gauge = role.gauge
    return [] if gauge is None else [one.drift.key.metric for one in gauge.drifts()]


def learned(role: GaugeRole) -> dict[str, int]:
    """Invocations by agent."""
    gauge = role.gauge
    return {} if gauge is None else {one.agent: one.invocations for one in gauge.traffic()}


class Backend:
    """A sink that keeps what it was told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, EvaluationKey]] = []

    def publish(self, evaluation: Evaluation, now: float) -> None:
        self.told.append(("publish", evaluation.key))

    def publish_judged(self, judged: Judged, now: float) -> None:
        pass

    def publish_conversation(self, result: ConversationResult, now: float) -> None:
        pass

    def withdraw(self, key: EvaluationKey) -> None:
        self.told.append(("withdraw", key))

    def close(self) -> None:
        pass


def test_sinks_withdraw_what_was_purged_before_it_was_published(address: str) -> None:
    backend, unwanted = Backend(), evaluation("unwanted")
    with scorer(address) as database:
        body = publications.encode(Publication(time.time(), [unwanted]))
        assert database.commit(step(1, [unwanted], publication=body))
    purge(address, Selection(trace_id=unwanted.key[1]), 0.0)

    def build_with_backend(telemetry: InternalTelemetry, records: AgentRecords) -> Gauge:
        built = build(telemetry, records)
        built.sinks = [*built.sinks, backend]
        return built

    with process(address, build_with_backend):
        assert until(lambda: len(backend.told) == 2)
    assert backend.told == [("publish", unwanted.key), ("withdraw", unwanted.key)]
