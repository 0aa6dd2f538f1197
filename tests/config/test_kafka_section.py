"""The section `kafka`: what operators may set, and what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.config import Config, cross_checks
from pathgauge.collector.config.kafka import OWN_SETTINGS, Kafka
from pathgauge.collector.core.documents import ConfigError

SECRET = "s3cret-word"
SERVERS = "client: {bootstrap.servers: 'kafka:9092'}"


def load(text: str, folder: Path) -> Config:
    file = folder / "pathgauge.yaml"
    file.write_text(
        f"{text}\npostgres: {{conninfo: 'postgresql://db/results'}}\n", encoding="utf-8"
    )
    return config.load(file, {"PASSWORD": SECRET})


def message(text: str, folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(text, folder)
    return str(caught.value)


def test_it_is_off_by_default() -> None:
    assert config.load().kafka is None


def test_settings_of_the_client_are_passed_on_as_text(tmp_path: Path) -> None:
    loaded = load(
        """
kafka:
  client:
    bootstrap.servers: a:9092,b:9092
    security.protocol: sasl_ssl
    sasl.username: 007
    sasl.password: ${env:PASSWORD}
    enable.ssl.certificate.verification: false
    socket.timeout.ms: 5000
  group_instance_id: one
""",
        tmp_path,
    )
    assert loaded.kafka == Kafka(
        client={
            "bootstrap.servers": "a:9092,b:9092",
            "security.protocol": "sasl_ssl",
            "sasl.username": "7",
            "sasl.password": SECRET,
            "enable.ssl.certificate.verification": "false",
            "socket.timeout.ms": "5000",
        },
        group_instance_id="one",
    )
    assert (loaded.kafka.traces_topic, loaded.kafka.logs_topic) == ("otlp_spans", "otlp_logs")
    assert SECRET not in repr(loaded)


@pytest.mark.parametrize("name", sorted(OWN_SETTINGS))
def test_what_decides_about_loss_cannot_be_set(name: str, tmp_path: Path) -> None:
    text = f"kafka: {{client: {{bootstrap.servers: 'a:1', {name}: x}}}}"
    assert f"found {name} in client, expected " in message(text, tmp_path)


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("{}", "found no bootstrap.servers in client"),
        ("{client: {}}", "found no bootstrap.servers in client"),
        ("{client: {bootstrap.servers: ' '}}", "found no bootstrap.servers in client"),
        (
            "{client: {bootstrap_servers: 'a:1'}}",
            "found 'bootstrap_servers' in client, expected a setting of librdkafka",
        ),
        (
            f"{{client: {{bootstrap.servers: 'a:1', sasl.password: [{SECRET}]}}}}",
            "found a value of sasl.password that is not text, a number or a switch",
        ),
        (
            "{client: {bootstrap.servers: 'a:1', group.id: x}}",
            "found group.id in client, expected the key group of the section",
        ),
        (f"{{{SERVERS}, traces_topic: 'a b'}}", "expected the name of a topic"),
        (f"{{{SERVERS}, logs_topic: otlp_spans}}", "expected two topics"),
        (f"{{{SERVERS}, group: ''}}", "expected text that is not empty"),
        (f"{{{SERVERS}, tenant: a}}", "found 'a', expected none: without auth there are no"),
    ],
)
def test_mistakes_are_explained_without_values(section: str, expected: str, tmp_path: Path) -> None:
    found = message(f"kafka: {section}", tmp_path)
    assert expected in found
    assert SECRET not in found


def test_an_unknown_tenant_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("token-of-acme")
    auth = "auth: {tenants: {acme: {token_file: tokens}}}\n"
    assert load(f"{auth}kafka: {{{SERVERS}, tenant: acme}}", tmp_path).kafka is not None
    text = f"{auth}kafka: {{{SERVERS}, tenant: acne}}"
    assert "found 'acne', expected one of acme; did you mean" in message(text, tmp_path)


def test_the_package_must_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_checks, "missing_package_of_kafka", lambda: True)
    assert "pip install 'pathgauge[kafka]'" in message(f"kafka: {{{SERVERS}}}", tmp_path)


def test_settings_may_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "kafka").write_text(f"{SECRET}\n")
    text = f"kafka: {{{SERVERS}, client_files: {{sasl.password: secrets/kafka}}}}"
    loaded = load(text, tmp_path)
    assert loaded.kafka is not None
    assert loaded.kafka.client == {"bootstrap.servers": "kafka:9092", "sasl.password": SECRET}
    assert SECRET not in repr(loaded)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("{sasl.password: absent}", "found 'absent', expected a readable file (No such file"),
        ("{sasl.password: .}", "found '.', expected a readable file (Is a directory)"),
        ("{sasl.password: empty}", "found an empty file: "),
        ("{sasl.password: binary}", "found 'binary', expected a readable file (not UTF-8)"),
        ("{group.id: empty}", "found group.id in client, expected the key group of the section"),
        ("{bootstrap.servers: empty}", "in client and in client_files, expected one of them"),
    ],
)
def test_mistakes_in_files_are_explained(files: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert expected in message(f"kafka: {{{SERVERS}, client_files: {files}}}", tmp_path)


@pytest.mark.parametrize(
    "rules",
    [
        "detectors: {email: hash}",
        "attributes: [{match: user.*, action: hash}]",
        "tenants: {a: {detectors: {card: hash}}}",
        "tenants: {a: {attributes: [{match: user.*, action: hash}]}}",
    ],
)
def test_gateways_hash_only_with_a_common_salt(rules: str, tmp_path: Path) -> None:
    auth = "auth: {tenants: {a: {client_names: [a.example]}}}"
    section = f"kafka: {{{SERVERS}}}\n{auth}\nredaction:\n  {rules}"
    assert message(section, tmp_path) == (
        f"{tmp_path}/pathgauge.yaml:3:1: redaction: found the action hash without salt, expected a"
        " salt that all gateways have: with kafka, each would replace equal values by different"
        " hashes"
    )
    load(f"{section}\n  salt: {'0' * 16}a", tmp_path)
    load(section.replace("hash", "mask"), tmp_path)


def test_one_gateway_may_make_up_a_salt(tmp_path: Path) -> None:
    file = tmp_path / "pathgauge.yaml"
    file.write_text("redaction: {detectors: {email: hash}}\nworkers: 2")
    assert config.load(file).redaction is not None
