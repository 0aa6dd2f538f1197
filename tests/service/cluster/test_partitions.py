"""A scorer does not start when partitions were added too early: a real Kafka and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import NewPartitions

from pathgauge.collector.config import Config
from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.core.pipeline_events import Changes
from pathgauge.collector.service.cluster.partitions import settle_partitions
from pathgauge.collector.store import StoreError
from support.kafka import Broker, running_broker
from support.otlp_requests import trace_id, traces_body
from support.postgres import server
from support.shared_database import rows, scorer, step

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with running_broker() as running:
        yield running


@pytest.fixture
def address() -> Iterator[str]:
    with server() as running:
        yield running.database()


def test_partitions_are_accepted_only_when_every_record_is_read(
    broker: Broker, address: str
) -> None:
    topics = broker.topic(), broker.topic()
    kafka = Kafka(client=dict(broker.client()), traces_topic=topics[0], logs_topic=topics[1])
    config = Config(kafka=kafka)
    settle_partitions(config, kafka, address, 1)
    broker.produce(topics[0], traces_body([1]), key=trace_id(1))
    broker.produce(topics[0], b"damaged", key=trace_id(1))
    admin = broker.admin()  # its requests end with it
    added = admin.create_partitions([NewPartitions(name, 2) for name in topics])
    for done in added.values():
        done.result()
    with pytest.raises(StoreError, match=r"found 2 partitions, expected 1, .* 2 unread records: "):
        settle_partitions(config, kafka, address, 2)
    with scorer(address) as database:
        assert database.commit(step(1, changes=Changes()))
    rows(address, "UPDATE partitions SET offsets = jsonb_build_object(%s::text, 1)", topics[0])
    settle_partitions(config, kafka, address, 2)  # the damaged record is none that counts
    assert rows(address, "SELECT partitions FROM partition_count") == [(2,)]
