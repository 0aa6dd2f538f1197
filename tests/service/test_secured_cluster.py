"""The configuration of docs/scaling.md, over TLS, with passwords and with the rights that it
names: it works, and what is wrong with it ends the start without telling a secret.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.x509 import load_pem_x509_certificates

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.testing import span
from support.certificates import Authority
from support.documented_rights import Right, documented_rights
from support.postgres import PASSWORD as DATABASE_PASSWORD
from support.repository import DOCS
from support.running import FREE_PORTS, PATHGAUGE, QUICK, Collector, until
from support.secured import Services, running_services

pytestmark = pytest.mark.slow

PAGE = (DOCS / "scaling.md").read_text(encoding="utf-8")
GATEWAY_PASSWORD, SCORER_PASSWORD, WRONG = "12e4", "s3cret 'of' \"scorers\"", "wr0ng-password"
"""The first looks like a number."""
GATEWAY = {"KAFKA_USER": "pathgauge-gateway", "KAFKA_PASSWORD": GATEWAY_PASSWORD}
SCORER = {"KAFKA_USER": "pathgauge-scorer", "KAFKA_PASSWORD": SCORER_PASSWORD}
LISTENER = {"KAFKA_USER": "listener", "KAFKA_PASSWORD": "l1stener"}
"""Sees the topics, and not their settings."""
DATABASE = {"PGUSER": "pathgauge", "PGPASSWORD": DATABASE_PASSWORD}
ENDED_S = 90.0
EXPIRY = "pathgauge_certificate_expiry_timestamp_seconds"


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """With users, topics and rights as documented."""
    with running_services(tmp_path_factory.mktemp("services")) as running:
        for user in (GATEWAY, SCORER, LISTENER):
            running.add_user(user["KAFKA_USER"], user["KAFKA_PASSWORD"])
        for name in ("otlp_spans", "otlp_logs"):
            running.broker.topic(name, partitions=2)
        running.grant(documented_rights())
        listener = f"User:{LISTENER['KAFKA_USER']}"
        running.grant(
            Right("topic", name, listener, "Describe") for name in ("otlp_spans", "otlp_logs")
        )
        yield running


def documented(services: Services, database: str) -> dict[str, Any]:
    """The configuration of the page, with the addresses of this test."""
    section = PAGE.partition("\n### Configuration\n")[2]
    text = section.partition("```yaml\n")[2].partition("```")[0]
    for name, own in {
        "kafka-1:9093,kafka-2:9093,kafka-3:9093": services.address,
        "/etc/pathgauge/kafka-ca.crt": str(services.ca),
        "/etc/pathgauge/db-ca.crt": str(services.ca),
        "host=db.example dbname=pathgauge": f"{services.host()} dbname={database}",
    }.items():
        assert name in text
        text = text.replace(name, own)
    return dict(yaml.safe_load(text))


def test_the_documented_cluster_scores_over_tls_with_the_documented_rights(
    services: Services, tmp_path: Path
) -> None:
    written = documented(services, services.database.named())
    written |= {"logging": {"format": "json", "level": "debug"}, "assembly": QUICK}
    from_files = tmp_path / "scorer"
    for role in ("gateway", "scorer", "gauge"):
        (tmp_path / role / "references").mkdir(parents=True)
        (tmp_path / role / "references" / "one.yaml").write_text(
            "- {scenario: refund, expected_tools: [find_order]}"
        )
    (from_files / "password").write_text(f"{SCORER_PASSWORD}\n")
    passwords = from_files / "pgpass"
    passwords.write_text(f"localhost:*:*:pathgauge:{DATABASE_PASSWORD}\n")
    passwords.chmod(0o600)
    client = {**written["kafka"]["client"]}
    client.pop("sasl.password")
    filed = written | {"kafka": {"client": client, "client_files": {"sasl.password": "password"}}}
    with ExitStack() as stack:

        def start(role: str, configuration: dict[str, Any], **variables: str) -> Collector:
            return stack.enter_context(
                Collector(tmp_path / role, (), ("--role", role), variables, **configuration)
            )

        address = written["postgres"]["conninfo"].replace(str(services.ca), "/none/db-ca.crt")
        no_database = written | {"postgres": {"conninfo": address}}
        gateway = start("gateway", no_database, **GATEWAY)
        gauge = start("gauge", written, **SCORER, **DATABASE)
        user = {"KAFKA_USER": SCORER["KAFKA_USER"], "PGUSER": "pathgauge"}
        scorer = start("scorer", filed, **user, PGPASSFILE=str(passwords))
        body = encode_request(run("one") + run("two"))
        assert until(lambda: gateway.post("/v1/traces", body)[0] == 200)
        passed = {"metric": "tool_trajectory_avg_score", "outcome": "pass"}
        assert until(lambda: gauge.value("pathgauge_evaluations_total", **passed) == 2)
        assert until(lambda: gauge.value("pathgauge_canary_traces_total", outcome="ok") > 0)
        assert until(
            lambda: [one.get("/readyz")[0] for one in (gateway, scorer, gauge)] == [200] * 3
        )
        running = gateway, scorer, gauge
        [authority] = load_pem_x509_certificates(services.ca.read_bytes())
        for server, file, connected in (
            ("kafka", "ssl.ca.location", running),
            ("postgres", "sslrootcert", (scorer, gauge)),
        ):
            found = {one.value(EXPIRY, server=server, file=file) for one in connected}
            assert found == {authority.not_valid_after_utc.timestamp()}
        assert [one.stop() for one in running] == [0, 0, 0]
        lines = [line for one in running for line in one.log()]
    # A busy machine may be late; that says nothing about certificates, passwords and rights.
    problems = [line for line in lines if line["level"] in ("warning", "error")]
    assert [line for line in problems if "Timed out" not in line.get("reason", "")] == []
    assert not any(told(secret, str(lines)) for secret in (SCORER_PASSWORD, DATABASE_PASSWORD))


def run(name: str) -> list[Any]:
    agent = {"gen_ai.operation.name": "invoke_agent", "pathgauge.scenario.id": "refund"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find_order"}
    return [
        span(name, "invoke_agent", agent, trace=name, end=9.0),
        span(f"{name} tool", "tool", tool, trace=name, parent=name, start=1.0),
    ]


def told(secret: str, text: str) -> bool:
    return secret in text or repr(secret)[1:-1] in text


def test_a_wrong_ca_password_or_user_ends_the_start_with_the_reason(
    services: Services, tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(Authority().certificate)
    written = documented(services, services.database.named())

    def with_client(**changed: str) -> dict[str, Any]:
        client = written["kafka"]["client"] | {
            name.replace("_", "."): value for name, value in changed.items()
        }
        return written | {"kafka": {"client": client}}

    def with_address(old: str, new: str) -> dict[str, Any]:
        address = written["postgres"]["conninfo"]
        assert old in address
        return written | {"postgres": {"conninfo": address.replace(old, new)}}

    ca, host = str(services.ca), "host=localhost"
    no_password = {"PGUSER": "pathgauge", "PGPASSFILE": "/dev/null"}
    no_broker = f"found no usable Kafka broker at {services.address} within 30 s: "
    no_settings = "topic otlp_spans: its settings cannot be read, expected the right to describe"
    no_database = "found no usable PostgreSQL within 30 s: "
    no_file = "postgres.conninfo: found sslrootcert="
    cases: list[tuple[str, dict[str, Any], dict[str, str], str, str]] = [
        ("gateway", written, GATEWAY | {"KAFKA_PASSWORD": WRONG}, no_broker, "authentication"),
        ("gateway", with_client(ssl_ca_location=str(other)), GATEWAY, no_broker, "certificate"),
        ("gateway", written, SCORER | {"KAFKA_USER": "nobody"}, no_broker, "authentication"),
        ("gateway", written, LISTENER, no_settings, "authorization failed"),
        ("scorer", written, SCORER | DATABASE | {"PGPASSWORD": WRONG}, no_database, "password"),
        ("gauge", written, SCORER | no_password, no_database, "no password supplied"),
        ("gauge", with_address(ca, str(other)), SCORER | DATABASE, no_database, "certificate"),
        ("scorer", with_address(ca, "/no.pem"), SCORER | DATABASE, no_file, "/no.pem"),
        (
            "gauge",
            with_address(host, "hostaddr=127.0.0.1 host=db.example"),
            SCORER | DATABASE,
            no_database,
            "db.example",
        ),
    ]
    started = [
        start(tmp_path / str(number), role, configuration, variables)
        for number, (role, configuration, variables, *_) in enumerate(cases)
    ]
    outputs = [process.communicate(timeout=ENDED_S)[0] for process in started]
    assert [process.returncode for process in started] == [2] * len(cases), outputs
    for output, (*_, problem, reason) in zip(outputs, cases, strict=True):
        [last] = [line for line in output.splitlines() if line.startswith("pathgauge: ")][:1]
        assert problem in last, output
        assert reason in last.lower(), output
        secrets = WRONG, SCORER_PASSWORD, DATABASE_PASSWORD
        assert [secret for secret in secrets if told(secret, output)] == []


def start(
    folder: Path, role: str, configuration: dict[str, Any], variables: dict[str, str]
) -> subprocess.Popen[str]:
    folder.mkdir()
    file = folder / "pathgauge.yaml"
    file.write_text(yaml.safe_dump({**FREE_PORTS, **configuration, "references": []}))
    return subprocess.Popen(
        [PATHGAUGE, "serve", "--config", file, "--role", role],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
