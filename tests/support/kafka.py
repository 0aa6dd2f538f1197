"""Runs a real Kafka broker for tests: one process, on loopback, with its data in a folder.

Each process of pytest starts its own when a test asks for it, so that a test may kill it without
disturbing others. It takes about three seconds and 350 MB.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.link import Link
from support.monitoring import REQUIRED
from support.ports import free_port
from support.running import PATIENCE_S, until

VERSION = "4.0.0"
CACHE = Path.home() / ".cache" / "pathgauge-tests" / f"kafka-{VERSION}"
JARS = CACHE / "libs"
_QUIET = {"log_level": 0}
"""Not a logger: librdkafka may call it while its client is destroyed, and ends the process."""
_CLUSTER_ID = "pathgauge-tests-cluster"
_JAVA = ("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


def require_broker() -> None:
    """Skip the test if something is missing; fail in CI."""
    missing = ""
    if importlib.util.find_spec("confluent_kafka") is None:
        missing = "no package confluent-kafka: make test installs it"
    elif shutil.which("java") is None:
        missing = "no `java` on PATH: sudo apt-get install openjdk-17-jre-headless"
    elif not list(JARS.glob("kafka_2.13-*.jar")):
        missing = f"no Kafka in {JARS}: make kafka (needs maven)"
    if missing and REQUIRED:
        pytest.fail(f"{missing}; CI or PATHGAUGE_E2E requires it")
    if missing:
        pytest.skip(missing)


@dataclass(frozen=True)
class Secured:
    """A second listener, for TLS and SCRAM, whose users have only the rights that they were given.
    The other listener has every right.
    """

    address: str
    keystore: Path
    """The private key and the certificates in PEM."""


class Broker:
    """A broker, which is its own controller. Its ports and its data survive `kill`."""

    def __init__(self, folder: Path, secured: Secured | None = None, links: int = 0) -> None:
        """`links` is how many ways to it can be cut apart from the others."""
        self._folder = folder
        self._names = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"127.0.0.1:{free_port()}"
        self._settings = folder / "server.properties"
        ports = [free_port() for _ in range(links)]
        self.links = [Link(port) for port in ports]
        linked = {
            f"127.0.0.1:{port}": f"127.0.0.1:{link.port}"
            for port, link in zip(ports, self.links, strict=True)
        }
        _write_settings(self._settings, self.address, folder / "data", secured, linked)
        shutil.copytree(_formatted(), folder / "data")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_JAVA, "-cp", f"{JARS}/*", "kafka.Kafka", str(self._settings)],
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        assert until(self._answers, 3 * PATIENCE_S), (self._folder / "log").read_text()

    def kill(self) -> None:
        """End it at once, as a power cut does to a process."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stop it without closing its connections."""
        self._running.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """The opposite of `pause`."""
        self._running.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Kill it if it runs, and start it with the same data."""
        if self._process is not None:
            self.kill()
        self.start()

    def stop(self) -> None:
        """End it in order."""
        if self._process is not None:
            self._end(signal.SIGTERM)

    def topic(self, name: str = "", partitions: int = 1, **settings: Any) -> str:
        """Create a topic, with `_` for each `.` in the names of its settings. Returns its name, by
        default a new one.
        """
        from confluent_kafka.admin import NewTopic  # noqa: PLC0415

        name = name or f"topic-{next(self._names)}"
        config = {key.replace("_", "."): str(value) for key, value in settings.items()}
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        admin = self.admin()  # its requests end with it
        assert until(lambda: _created(admin, new)), "the controller lets no broker have a topic"
        # The controller has created it; the broker may not know it yet.
        assert until(lambda: _partitions(admin, name) == partitions), name
        return name

    def client(self, **settings: Any) -> Mapping[str, Any]:
        """The settings of a client, with `_` for each `.` in names."""
        named = {key.replace("_", "."): value for key, value in settings.items()}
        return {"bootstrap.servers": self.address, **named}

    def client_over(self, link: Link) -> Mapping[str, Any]:
        """The settings of a client whose connections take one of `links`."""
        return self.client(bootstrap_servers=f"127.0.0.1:{link.port}")

    def produce(self, topic: str, value: bytes, **settings: Any) -> None:
        """Write one record as another program does, and wait until it is stored."""
        from confluent_kafka import Producer  # noqa: PLC0415

        producer = Producer({**self.client(partitioner="fnv1a"), **_QUIET})
        producer.produce(topic, value, **settings)
        assert producer.flush(PATIENCE_S) == 0

    def records(self, topic: str) -> list[Any]:
        """All records of a topic, by partition and offset."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition  # noqa: PLC0415

        settings = self.client(group_id="test", enable_partition_eof=True)
        consumer = Consumer({**settings, **_QUIET})
        partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found, ended = [], 0
        while ended < len(partitions):
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"{topic} cannot be read"
            error = message.error()
            if error is None:
                found.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
        consumer.close()
        return sorted(found, key=lambda one: (one.partition(), one.offset()))

    def written(self, topic: str) -> int:
        """How many records the topic was ever given."""
        from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415

        consumer = Consumer({**self.client(group_id="test"), **_QUIET})
        partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        ends = [
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=PATIENCE_S)[1]
            for number in partitions
        ]
        consumer.close()
        return sum(ends)

    def admin(self) -> Any:
        """A client for administration."""
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        return AdminClient({**self.client(), **_QUIET})

    def _answers(self) -> bool:
        assert self._running.poll() is None, (self._folder / "log").read_text()
        try:
            return bool(self.admin().list_topics(timeout=1).brokers)
        except Exception:
            return False

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _end(self, number: int) -> None:
        process, self._process = self._running, None
        process.send_signal(number)
        process.wait(PATIENCE_S)


@contextmanager
def running_broker(secured: Secured | None = None, links: int = 0) -> Iterator[Broker]:
    """A broker in a new folder, which is removed at the end."""
    require_broker()
    with tempfile.TemporaryDirectory(prefix="pathgauge-kafka-") as folder:
        broker = Broker(Path(folder), secured, links)
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()


def _write_settings(
    file: Path,
    address: str,
    data: Path,
    secured: Secured | None = None,
    linked: Mapping[str, str] | None = None,
) -> None:
    """`linked` has the address that clients are told, by the address where the broker listens."""
    controller = f"127.0.0.1:{free_port()}"
    protocols = {"PLAINTEXT": "PLAINTEXT", "SASL_SSL": "SASL_SSL", "CONTROLLER": "PLAINTEXT"}
    listeners = {"PLAINTEXT": (address, address)}
    if secured is not None:
        listeners["SASL_SSL"] = (secured.address, secured.address)
    for number, addresses in enumerate((linked or {}).items()):
        listeners[f"LINK{number}"] = addresses
        protocols[f"LINK{number}"] = "PLAINTEXT"
    bound = [f"{name}://{at}" for name, (at, _) in listeners.items()]
    told = [f"{name}://{at}" for name, (_, at) in listeners.items()]
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": ",".join([*bound, f"CONTROLLER://{controller}"]),
        "advertised.listeners": ",".join(told),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{controller}",
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        ),
        "log.dirs": data,
        # a killed broker may come back after this time
        "broker.session.timeout.ms": 1000,
        "broker.heartbeat.interval.ms": 200,
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "log.retention.check.interval.ms": 500,
        "log.initial.task.delay.ms": 500,
        # 0 keeps a broker busy that does nothing
        "log.segment.delete.delay.ms": 500,
        "background.threads": 2,
        **(_security(secured) if secured else {}),
    }
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def _security(secured: Secured) -> dict[str, Any]:
    return {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": secured.keystore,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",  # whoever uses the other listener
    }


def _created(admin: Any, new: Any) -> bool:
    """Whether the topic exists now. For a moment after `resume`, the controller may refuse it or
    not answer: a broker that was silent is fenced until its next heartbeat.
    """
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415

    [created] = admin.create_topics([new], request_timeout=5).values()
    try:
        created.result(PATIENCE_S)
    except KafkaException as error:
        code = error.args[0].code()
        if code in {KafkaError.INVALID_REPLICATION_FACTOR, KafkaError._TIMED_OUT}:
            return False
        if code != KafkaError.TOPIC_ALREADY_EXISTS:  # an attempt without an answer
            raise
    return True


def _partitions(admin: Any, topic: str) -> int:
    found = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic]
    return 0 if found.error else len(found.partitions)


def _formatted() -> Path:
    """A formatted data folder. Formatting takes as long as a start, so it is done once."""
    found = CACHE / "formatted"
    if not found.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            settings, data = Path(folder, "server.properties"), Path(folder, "data")
            _write_settings(settings, "127.0.0.1:1", data)
            tool = [*_JAVA, "-cp", f"{JARS}/*", "kafka.tools.StorageTool", "format"]
            subprocess.run(
                [*tool, "-t", _CLUSTER_ID, "-c", settings], check=True, capture_output=True
            )
            try:
                os.rename(data, found)
            except OSError:  # another process was faster
                assert found.exists()
    return found
