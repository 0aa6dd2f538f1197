"""The compose file of a cluster, without docker: files exist, roles and addresses agree."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector import config
from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.service.cluster.roles import ROLES
from support.repository import DEPLOY, ROOT
from support.shipped import default_ports, document

COMPOSE = document("compose-cluster.yaml")
SERVICES: dict[str, Any] = COMPOSE["services"]
CONFIG = config.load(DEPLOY / "compose" / "cluster.yaml", {})
OURS = ("gateway", "scorer", "gauge", "standby")


def pinned(name: str) -> dict[str, str]:
    """The versions of the packages of a lock file, by name."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))


def test_the_packages_of_a_cluster_extend_those_of_the_collector_at_the_tested_versions() -> None:
    plain, cluster, tested = (
        pinned(f"requirements{kind}.lock") for kind in ("", "-cluster", "-dev")
    )
    assert plain.items() <= cluster.items()
    more = {name: version for name, version in cluster.items() if name not in plain}
    assert {"confluent-kafka", "psycopg", "psycopg-binary"} <= set(more)
    assert more.items() <= tested.items()


def test_every_role_runs_and_the_gauge_has_a_standby() -> None:
    roles = [SERVICES[name]["command"][-2:] for name in OURS]
    assert [role for option, role in roles if option == "--role"] == [*ROLES, "gauge"]
    assert SERVICES["scorer"]["deploy"]["replicas"] == 2
    assert {SERVICES[name]["build"]["args"]["REQUIREMENTS"] for name in OURS} == {
        "requirements-cluster.lock"
    }


def test_the_configuration_names_the_services_and_their_topics() -> None:
    kafka, postgres = CONFIG.kafka, CONFIG.postgres
    assert kafka is not None
    assert postgres is not None
    advertised = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert advertised == f"PLAINTEXT://{kafka.client['bootstrap.servers']}"
    environment = SERVICES["postgres"]["environment"]
    assert postgres.conninfo == (
        f"host=postgres dbname={environment['POSTGRES_DB']} user={environment['POSTGRES_USER']}"
    )
    [script] = SERVICES["topics"]["command"]
    assert f"in {kafka.traces_topic} {kafka.logs_topic};" in script
    assert environment["POSTGRES_PASSWORD"] == SERVICES["scorer"]["environment"]["PGPASSWORD"]
    assert Kafka(client=dict(kafka.client)) == kafka


def test_the_topics_keep_records_for_as_long_as_they_may_be_needed() -> None:
    [script] = SERVICES["topics"]["command"]
    [retention_ms] = re.findall(r"retention\.ms=(\d+)", script)
    assert int(retention_ms) / 1000 >= CONFIG.assembly.max_age + CONFIG.assembly.late_ttl


@pytest.mark.parametrize("name", SERVICES)
def test_containers_mount_existing_files_and_publish_only_on_loopback(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"[\w/-]+:v?\d+\.\d+(\.\d+)?", service["image"])
    for source, target, *mode in (volume.split(":") for volume in service["volumes"]):
        assert target.startswith("/")
        if source.startswith("./"):
            assert (DEPLOY / source).exists(), source
            assert mode == ["ro"]
        else:
            assert source in COMPOSE["volumes"]
    published = [port.split(":") for port in service.get("ports", [])]
    assert {host for host, _, _ in published} <= {"127.0.0.1"}
    assert {int(inside) for _, _, inside in published} <= {*default_ports().values(), 9090}
    outside = [port for one in SERVICES.values() for port in one.get("ports", [])]
    assert len({port.split(":")[1] for port in outside}) == len(outside)


@pytest.mark.parametrize("name", SERVICES)
def test_containers_drop_privileges(name: str) -> None:
    service = SERVICES[name]
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert service.get("read_only") or service["image"].startswith("apache/kafka")
    assert set(service.get("depends_on", {})) < set(SERVICES)
    assert set(service["networks"]) <= set(COMPOSE["networks"])


def test_a_standby_is_not_restarted_because_it_is_not_ready() -> None:
    for name in ("gauge", "standby"):
        [*_, code] = SERVICES[name]["healthcheck"]["test"]
        assert "/healthz" in code


def test_prometheus_scrapes_every_process() -> None:
    [job] = document("compose", "prometheus-cluster.yml")["scrape_configs"]
    [static], [found] = job["static_configs"], job["dns_sd_configs"]
    port = default_ports()["metrics"]
    assert job["job_name"] == "pathgauge"
    assert found["port"] == port
    scraped = {*static["targets"], *(f"{name}:{port}" for name in found["names"])}
    assert scraped == {f"{name}:{port}" for name in OURS}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on PATH")
def test_promtool_accepts_the_scrape_configuration() -> None:
    file = DEPLOY / "compose" / "prometheus-cluster.yml"
    command: list[str | Path] = ["promtool", "check", "config", "--syntax-only", file]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
