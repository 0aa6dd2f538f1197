"""Every pathgauge configuration of `deploy/` passes `pathgauge validate`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from pathgauge.collector import config
from pathgauge.collector.cli import app
from support.certificates import Authority
from support.shipped import DEPLOY, TOKEN, default_ports

CONFIGURATIONS = [
    "compose/cluster.yaml",
    "compose/pathgauge.yaml",
    "kubernetes/base/config/pathgauge.yaml",
    "kubernetes/cluster/config/pathgauge.yaml",
    "systemd/pathgauge.yaml",
]
REFERENCE = "scenario: s1\nexpected_tools: [lookup]\n"


@pytest.fixture(name="environment")
def _environment(tmp_path: Path) -> dict[str, str]:
    """The environment with a folder of tokens and the credentials of Kafka, as on Kubernetes."""
    for name, token in (("otlp", TOKEN), ("metrics", TOKEN[::-1])):
        (tmp_path / name).write_text(token)
        (tmp_path / name).chmod(0o600)
    credentials = {"KAFKA_USER": "pathgauge-scorer", "KAFKA_PASSWORD": TOKEN}
    return {**os.environ, "PATHGAUGE_SECRETS": str(tmp_path), **credentials}


def test_every_configuration_is_tested() -> None:
    found = [
        str(path.relative_to(DEPLOY))
        for path in DEPLOY.rglob("*.yaml")
        if {"criteria", "store"} <= set(yaml_keys(path))
    ]
    assert sorted(found) == CONFIGURATIONS


def yaml_keys(path: Path) -> list[str]:
    documents = list(yaml.safe_load_all(path.read_text()))
    return list(documents[0]) if len(documents) == 1 and isinstance(documents[0], dict) else []


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_validate_accepts_the_configuration(
    name: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "references").mkdir()
    (tmp_path / "references" / "s1.yaml").write_text(REFERENCE)
    (tmp_path / "ca.crt").write_bytes(Authority().certificate)
    text = (DEPLOY / name).read_text()
    for folder in ("kafka-ca", "postgres-ca"):
        text = text.replace(f"/etc/pathgauge/{folder}", str(tmp_path))
    (tmp_path / "pathgauge.yaml").write_text(text)
    checked = CliRunner().invoke(
        app, ["validate", "--config", str(tmp_path / "pathgauge.yaml")], env=environment
    )
    warnings = [
        line
        for line in checked.stderr.splitlines()
        if "insecure_bind" not in line and "in plain text" not in line
    ]
    assert (checked.exit_code, ": ok, references: 1" in checked.stdout, warnings) == (0, True, [])


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_it_listens_on_the_usual_ports(name: str, environment: dict[str, str]) -> None:
    loaded = config.load(DEPLOY / name, environment)
    protocols = loaded.receivers.otlp.protocols
    assert protocols.grpc
    assert protocols.http
    endpoints = (
        protocols.grpc.endpoint,
        protocols.http.endpoint,
        loaded.exporters.prometheus.endpoint,
    )
    assert [endpoint.port for endpoint in endpoints] == list(default_ports().values())


def test_the_shipped_references_are_equal() -> None:
    for folder in ("compose", "kubernetes/base/config"):
        assert list((DEPLOY / folder).rglob("refund-order.yaml")), folder
    texts = {path.read_text() for path in DEPLOY.rglob("refund-order.yaml")}
    assert len(texts) == 1
