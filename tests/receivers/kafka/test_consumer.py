"""Scorers share the partitions of a real Kafka, and each record is processed once."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from pathgauge.collector.config.kafka import OWN_SETTINGS
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.partitioning import partition_of_trace
from pathgauge.collector.receivers.kafka import LogError, consumer as consuming, rereading
from pathgauge.collector.receivers.kafka.lanes import FRESH_S
from pathgauge.collector.receivers.kafka.partition_source import PartitionSource, Position
from pathgauge.collector.receivers.kafka.producer import KafkaLog
from pathgauge.collector.receivers.kafka.records import KafkaRecord
from support.kafka import Broker
from support.otlp_requests import logs_batch, logs_body, spans_batch, trace_id, traces_body
from support.running import PATIENCE_S, until

from .scorers import Cluster, Scorer

pytestmark = pytest.mark.slow


def produce(cluster: Cluster, *batches: Batch) -> None:
    """Make batches durable as a gateway does."""

    async def all_at_once() -> None:
        log = KafkaLog(cluster.config(), InternalTelemetry(), 1_000_000)
        assert all(await asyncio.gather(*map(log.accept, batches)))
        await asyncio.to_thread(log.close)

    asyncio.run(all_at_once())


def write(cluster: Cluster, trace: int, at_ms: int = 0, signal: str = "traces") -> None:
    """Write a record as the Collector does."""
    topic = cluster.traces if signal == "traces" else cluster.logs
    body = traces_body([trace]) if signal == "traces" else logs_body([trace])
    cluster.broker.produce(topic, body, key=trace_id(trace), timestamp=at_ms)


def caught_up(*scorers: Scorer, since: float = 0.0) -> bool:
    """Whether all members together have everything that was written before `since`, in Unix time.
    What was written in the last seconds may be missing without it.
    """
    now = max(time.time(), since + FRESH_S)
    sources = [one for scorer in scorers for one in list(scorer.consumer.sources.values())]
    return len(sources) == scorers[0].cluster.partitions and all(
        source.at_end(now) for source in sources
    )


def catch_up(*scorers: Scorer) -> bool:
    """Wait until all members together have everything that was written before this call."""
    since = time.time()
    return until(lambda: caught_up(*scorers, since=since))


def test_a_scorer_gets_what_gateways_were_given(broker: Broker) -> None:
    cluster = Cluster(broker, tenants=Cluster.tenants._replace(known=frozenset({"acme", "b"})))
    began = time.time()
    sent = spans_batch(1, 2, 1, tenant="acme"), logs_batch(2, None, tenant="b")
    produce(cluster, *sent)
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
    found = sorted(cluster.committed, key=lambda one: (one.topic == cluster.logs, one.offset))
    first, second, logs = (one.batch for one in found)
    assert {span for one in (first, second) for span in one.spans} == set(sent[0].spans)
    assert [[span.trace_id for span in one.spans] for one in (first, second)] in (
        [[trace_id(1)] * 2, [trace_id(2)]],
        [[trace_id(2)], [trace_id(1)] * 2],
    )
    assert first.spans[0].resource == sent[0].spans[0].resource
    assert ([one.raw for one in logs.logs], logs.without_trace) == ([sent[1].logs[0].raw], 1)
    assert [one.batch.origin.tenant for one in found] == ["acme", "acme", "b"]
    assert {(one.batch.origin.transport, one.batch.sent_as) for one in found} == {
        ("grpc", "protobuf")
    }
    assert all(began - 1 < one.at < time.time() + 1 for one in found)


def test_scorers_share_partitions_and_process_each_record_once(broker: Broker) -> None:
    cluster = Cluster(broker, partitions=6)
    produce(cluster, *(spans_batch(n) for n in range(300)))
    with Scorer(cluster) as first:
        assert until(lambda: first.owned == set(range(6)) and cluster.span_ids())
        with Scorer(cluster) as second:
            produce(cluster, *(spans_batch(n) for n in range(300, 600)))
            assert until(lambda: (len(first.owned), len(second.owned)) == (3, 3))
            assert first.owned | second.owned == set(range(6))
            produce(cluster, *(spans_batch(n) for n in range(600, 900)))
            assert catch_up(first, second)
        assert until(lambda: first.owned == set(range(6)))
        produce(cluster, *(spans_batch(n) for n in range(900, 1000)))
        assert catch_up(first)
    expected = [span.span_id for n in range(1000) for span in spans_batch(n).spans]
    assert sorted(cluster.span_ids()) == sorted(expected)
    assert {kind for kind, _ in first.log + second.log} == {"assigned", "revoked"}


def test_span_and_log_record_of_a_trace_reach_the_same_scorer(broker: Broker) -> None:
    cluster = Cluster(broker, partitions=4)
    produce(cluster, spans_batch(*range(50)), logs_batch(*range(50)))
    with Scorer(cluster) as first, Scorer(cluster) as second:
        assert until(lambda: caught_up(first, second) and len(second.owned) == 2)
        first.commit_idle()
        second.commit_idle()
    for record in cluster.committed:
        [trace] = {one.trace_id for one in record.batch.spans or record.batch.logs}
        assert partition_of_trace(trace, 4) in range(4)
    assert len(cluster.committed) == 100


def test_a_scorer_that_is_too_slow_loses_its_partitions_and_gets_them_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "MAX_POLL_INTERVAL_S", 10.0)
    cluster = Cluster(broker)
    produce(cluster, *(spans_batch(n) for n in range(3)))
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
        usual = scorer.deliver

        def slow(partition: int, record: KafkaRecord) -> bool:
            scorer.deliver = usual  # type: ignore[method-assign]  # it is too slow once
            time.sleep(12)
            return usual(partition, record)

        scorer.deliver = slow  # type: ignore[method-assign]
        produce(cluster, spans_batch(3))
        assert until(lambda: ("lost", 0) in scorer.log)
        assert cluster.committed == []  # what was not committed is dropped
        assert until(lambda: caught_up(scorer))
    assert scorer.log == [("assigned", 0), ("lost", 0), ("assigned", 0), ("revoked", 0)]
    assert len(cluster.span_ids()) == 4


def test_two_members_with_one_name_are_told_and_nothing_bypasses_the_log(
    broker: Broker, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(broker)
    with Scorer(cluster, group_instance_id="one") as first:
        assert until(lambda: first.owned == {0})
        with Scorer(cluster, group_instance_id="one") as second:
            assert until(lambda: second.owned == {0})
            assert until(lambda: first.consumer.failure is not None)
    assert str(first.consumer.failure) == (
        "the consumer cannot continue: another process of the group has joined with the same"
        " kafka.group_instance_id 'one', expected a name of its own for each scorer"
    )
    assert first.log == [("assigned", 0), ("lost", 0)]
    assert capfd.readouterr().err == ""
    assert {one.name for one in caplog.records if "fenced" in one.getMessage()} == {"librdkafka"}


def test_a_member_with_a_name_gets_its_partitions_back_without_a_rebalance(broker: Broker) -> None:
    cluster = Cluster(broker, partitions=2)
    with Scorer(cluster, group_instance_id="a") as other:
        with Scorer(cluster, group_instance_id="b") as scorer:
            assert until(lambda: len(other.owned) == len(scorer.owned) == 1)
            kept = scorer.owned
            other.log.clear()
        with Scorer(cluster, group_instance_id="b") as again:
            assert until(lambda: again.owned == kept)
        assert other.log == []


class LosesItsBroker(Scorer):
    """Its broker fails while it gets its first partition."""

    def assigned(self, source: PartitionSource) -> Position:
        if not self.log:
            self.cluster.broker.kill()
        return super().assigned(source)


def test_a_broker_that_fails_during_an_assignment_does_not_end_the_process(broker: Broker) -> None:
    cluster = Cluster(broker)
    with LosesItsBroker(cluster) as scorer:
        assert until(lambda: scorer.owned)
        broker.start()
        produce(cluster, spans_batch(1))
        assert catch_up(scorer)


def test_a_full_scorer_is_offered_the_same_record_until_it_has_capacity(broker: Broker) -> None:
    cluster = Cluster(broker)
    produce(cluster, *(spans_batch(n, content=os.urandom(5000)) for n in range(1500)))
    with Scorer(cluster, {"max_lane_bytes": 50_000}) as scorer:
        scorer.is_full = True
        assert until(lambda: scorer.offered > 10)
        merged = scorer.source().merged
        lane = merged.lanes[0]
        assert until(lambda: lane.paused)
        assert lane.size < 3_000_000  # 500 are fetched at once
        assert not scorer.source().at_end(time.time())
        scorer.is_full = False
        assert until(lambda: caught_up(scorer))
        produce(cluster, spans_batch(1000))
        assert catch_up(scorer)
        assert scorer.source().lag() == 0
        scorer.commit_idle()
    offsets = [one.offset for one in cluster.committed]
    assert offsets == list(range(1501))


def test_a_lane_that_was_paused_at_its_end_does_not_hold_up_the_other(broker: Broker) -> None:
    cluster = Cluster(broker)
    produce(cluster, *(spans_batch(n) for n in range(20)))
    with Scorer(cluster, {"max_lane_bytes": 0}) as scorer:
        scorer.is_full = True
        assert until(lambda: scorer.offered > 10)
        lane = scorer.source().merged.lanes[0]
        assert until(lambda: lane.paused)
        assert (lane.fetched, lane.at_end) == (20, False)  # nobody knows while it is paused
        scorer.is_full = False
        assert until(lambda: caught_up(scorer))
        produce(cluster, logs_batch(1))
        assert catch_up(scorer)
        scorer.commit_idle()
    assert len(cluster.committed) == 21


def test_only_a_broker_that_answers_lets_a_scorer_be_at_the_end(broker: Broker) -> None:
    cluster = Cluster(broker)
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
        assert not scorer.source().at_end(time.time() + 60)
        broker.kill()
        try:
            assert until(lambda: not caught_up(scorer))
        finally:
            broker.restart()
        assert until(lambda: caught_up(scorer))
        produce(cluster, spans_batch(1))
        assert until(lambda: scorer.offered == 1)
        assert until(lambda: caught_up(scorer))
        assert scorer.consumer.failure is None


def test_spans_and_log_records_arrive_in_the_order_of_their_times(broker: Broker) -> None:
    cluster = Cluster(broker)
    now = int(time.time() * 1000) - 1_000_000
    for n in range(60):
        write(cluster, n, now + n * 10_000, "traces" if n % 3 else "logs")
    with Scorer(cluster, {"max_lane_bytes": 500}) as scorer:
        assert until(lambda: caught_up(scorer))
        scorer.commit_idle()
    assert [round(one.at * 1000) - now for one in cluster.committed] == [
        n * 10_000 for n in range(60)
    ]


def test_times_never_go_back_and_are_not_far_in_the_future(broker: Broker) -> None:
    cluster = Cluster(broker)
    cluster.positions[0] = Position({}, 900.0)
    for at_ms in (500_000, 1_000_000, 990_000, 1_900_000, 1_001_000):
        write(cluster, 1, at_ms)
    with Scorer(cluster, {"clock": lambda: 1200.0}) as scorer:
        assert until(lambda: len(scorer.uncommitted.get(0, [])) == 5)
        scorer.commit_idle()
    assert [one.at for one in cluster.committed] == [900.0, 1000.0, 1000.0, 1205.0, 1205.0]


def test_a_record_that_cannot_be_read_does_not_stop_those_behind_it(broker: Broker) -> None:
    cluster = Cluster(broker, partitions=2)
    good, bad = traces_body([1]), b"\xff" * 40
    key = trace_id(1)
    own = [("pathgauge.version", b"1"), ("pathgauge.tenant", b"")]
    transport, form = ("pathgauge.transport", b"http"), ("pathgauge.format", b"json")
    hostile: list[dict[str, Any]] = [
        {"value": bad, "key": key},
        {"value": b"", "key": key},
        {"value": None, "key": key},
        {"value": good},
        {"value": traces_body([1, 2]), "key": key},
        {"value": good, "key": b"\xff" * 16},
        {"value": good, "key": key, "headers": [("pathgauge.version", b"2")]},
        {"value": good, "key": key, "headers": own},
        {"value": good, "key": key, "headers": [*own, transport, ("pathgauge.format", None)]},
        {"value": good, "key": key, "headers": [*own, transport, ("pathgauge.format", b"xml")]},
        {"value": good, "key": key, "headers": [own[0], ("pathgauge.tenant", b"\xff"), form]},
        {"value": bad, "key": key, "headers": [*own, transport, form]},
    ]
    partition = partition_of_trace(key, 2)
    for record in hostile:
        value = record.pop("value")
        broker.produce(cluster.traces, value, partition=partition, **record)
    broker.produce(cluster.traces, good, key=key, headers=[*own, transport, form])
    write(cluster, 1)
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
        assert scorer.source(partition).offsets()[cluster.traces] == len(hostile) + 2
    assert dict(cluster.telemetry.kafka_skipped.items()) == {
        ("undecodable",): 7,
        ("not_by_trace",): 3,
        ("unknown_version",): 1,
        ("unknown_tenant",): 1,
    }
    assert [
        (one.batch.origin.transport, one.batch.sent_as, len(one.batch.spans))
        for one in cluster.committed
    ] == [("http", "json", 1), ("kafka", None, 1)]


def test_rejected_spans_of_others_are_counted_and_the_rest_is_delivered(broker: Broker) -> None:
    cluster = Cluster(broker)
    invalid = traces_body([-1])
    broker.produce(cluster.traces, invalid + traces_body([1]), key=trace_id(1))
    broker.produce(cluster.traces, invalid, key="x")
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
    assert [len(one.batch.spans) for one in cluster.committed] == [1]
    assert dict(cluster.telemetry.refused.items()) == {("kafka", "invalid_id"): 2}


def test_what_was_deleted_before_it_was_read_is_counted(broker: Broker) -> None:
    cluster = Cluster(broker)
    produce(cluster, *(spans_batch(n) for n in range(20)))
    delete_before(cluster, 8)
    cluster.positions[0] = Position({cluster.traces: 3, cluster.logs: 0})
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
        scorer.commit_idle()
    assert [one.offset for one in cluster.committed] == list(range(8, 20))
    assert dict(cluster.telemetry.kafka_skipped.items()) == {("gone",): 5}


def test_after_a_topic_lost_its_end_reading_continues_there(broker: Broker) -> None:
    cluster = Cluster(broker)
    produce(cluster, *(spans_batch(n) for n in range(5)))
    cluster.positions[0] = Position({cluster.traces: 50})
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
        produce(cluster, spans_batch(6))
        assert until(lambda: scorer.offered == 1)
        scorer.commit_idle()
    assert [one.offset for one in cluster.committed] == [5]


def test_an_error_of_a_scorer_ends_the_consumer_and_frees_its_partitions(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than this test waits: only a member that leaves frees its partitions in time.
    monkeypatch.setattr(consuming, "SESSION_TIMEOUT_S", 2 * PATIENCE_S)
    cluster = Cluster(broker)
    produce(cluster, spans_batch(1))

    def fail(*_: object) -> bool:
        raise RuntimeError("no database")

    with Scorer(cluster) as scorer:
        scorer.deliver = fail  # type: ignore[method-assign, assignment]
        assert until(lambda: scorer.consumer.failure is not None)
        with Scorer(cluster) as other:
            assert until(lambda: caught_up(other))
    assert len(cluster.span_ids()) == 1


def test_operators_cannot_replace_what_keeps_positions_safe(broker: Broker) -> None:
    config = Cluster(broker).config(group_instance_id="a")
    own = consuming._membership(config) | consuming._rereading(config)
    assert own.keys() <= OWN_SETTINGS


def delete_before(cluster: Cluster, offset: int) -> None:
    admin = cluster.broker.admin()
    places = [TopicPartition(cluster.traces, 0, offset)]
    for deleted in admin.delete_records(places).values():
        deleted.result(10)


# reading again


def test_records_are_read_again_in_any_order(broker: Broker) -> None:
    cluster = Cluster(broker)
    produce(cluster, *(spans_batch(n, content=os.urandom(3000)) for n in range(1500)))
    produce(cluster, *(logs_batch(n) for n in range(20)))
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
        scorer.commit_idle()
        stored = {(one.topic, one.offset): one for one in cluster.committed}
        places = [(cluster.traces, n) for n in (1400, 3, 4, 5, 900, 0, 1499, 3)]
        places += [(cluster.traces, n) for n in range(10, 1000, 7)]
        places += [(cluster.logs, 7), (cluster.traces, 901), (cluster.logs, 19)]
        for _ in range(2):
            found = list(scorer.source().fetch(places))
            assert [(one.topic, one.offset) for one in found] == places
            for one in found:
                assert one.batch.body == stored[one.topic, one.offset].batch.body
                assert one.batch.spans == stored[one.topic, one.offset].batch.spans
        produce(cluster, spans_batch(9999))
        assert until(lambda: scorer.offered == 1521)  # was not disturbed


def test_a_small_cache_loses_nothing(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(broker)
    produce(cluster, *(spans_batch(n, content=os.urandom(3000)) for n in range(300)))
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
        monkeypatch.setattr(rereading, "MAX_CACHE_BYTES", 4000)
        places = [(cluster.traces, n) for n in (*range(0, 30, 3), *range(299, -1, -50))]
        found = scorer.source().fetch(places)
        assert [one.offset for one in found] == [offset for _, offset in places]


def test_records_that_are_gone_are_left_out_and_counted(broker: Broker) -> None:
    cluster = Cluster(broker)
    produce(cluster, *(spans_batch(n) for n in range(20)))
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
        delete_before(cluster, 8)
        places = [(cluster.traces, n) for n in (2, 7, 8, 12, 500)]
        found = list(scorer.source().fetch(places))
        assert [one.offset for one in found] == [8, 12]
        assert [one.offset for one in scorer.source().fetch([(cluster.traces, 2)])] == []
    assert dict(cluster.telemetry.kafka_skipped.items()) == {("gone",): 3}


def test_reading_again_waits_until_a_broker_is_back(broker: Broker) -> None:
    cluster = Cluster(broker)
    produce(cluster, *(spans_batch(n) for n in range(20)))
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
        broker.kill()
        try:
            waiting = asyncio.new_event_loop()
            fetched = waiting.run_in_executor(
                None, lambda: list(scorer.source().fetch([(cluster.traces, 3)]))
            )
            time.sleep(1)
            assert not fetched.done()
        finally:
            broker.restart()
        [found] = waiting.run_until_complete(fetched)
        waiting.close()
    assert found.offset == 3


def test_closing_ends_a_waiting_read(broker: Broker) -> None:
    cluster = Cluster(broker)
    produce(cluster, spans_batch(1))
    with Scorer(cluster) as scorer:
        assert until(lambda: caught_up(scorer))
        source = scorer.source()
        broker.pause()
        try:
            loop = asyncio.new_event_loop()
            fetched = loop.run_in_executor(None, lambda: list(source.fetch([(cluster.traces, 0)])))
            time.sleep(0.5)
            scorer.consumer._rereader.close()
            with pytest.raises(LogError):  # half of a trace is not taken for all of it
                loop.run_until_complete(fetched)
            loop.close()
        finally:
            broker.resume()
