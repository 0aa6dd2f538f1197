"""The image and the compose file, without docker: files exist, addresses and ports agree."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.repository import DEPLOY, ROOT
from support.shipped import default_ports, document
from support.wheels import build, files

COMPOSE = document("compose.yaml")
SERVICES: dict[str, Any] = COMPOSE["services"]
DOCKERFILE = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
IGNORED = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
PORTS = {
    "otel-collector": {4317, 4318, 8888},
    "pathgauge": set(default_ports().values()),
    "prometheus": {9090},
    "alertmanager": {9093},
    "tempo": {3200, 4317},
    "grafana": {3000},
}
"""The ports of each container."""


def instructions(name: str) -> list[str]:
    return re.findall(rf"^ *{name} (.*)$", DOCKERFILE, re.MULTILINE)


def copied() -> list[str]:
    """What the image takes of the build context."""
    return [
        name for copy in instructions("COPY") if "--from" not in copy for name in copy.split()[:-1]
    ]


def test_the_image_copies_only_existing_files_of_the_build_context() -> None:
    assert copied()
    assert [
        name for name in copied() if not (ROOT / name).exists() or f"!{name}" not in IGNORED
    ] == []
    assert IGNORED[0] == "*"


@pytest.mark.slow
def test_the_wheel_of_the_image_holds_what_the_wheel_of_a_checkout_holds(tmp_path: Path) -> None:
    context = tmp_path / "context"
    for name in copied():
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, context / name, symlinks=True)
        else:
            shutil.copy(ROOT / name, context / name)
    image = build("wheel", context, tmp_path / "image")
    assert files(image) == files(build("wheel", ROOT, tmp_path / "checkout"))


def test_all_packages_of_the_image_come_from_lock_files_with_hashes() -> None:
    installs = [
        command.strip()
        for run in instructions("RUN")
        for command in run.split("&&")
        if re.search(r"/pip\b", command)
    ]
    assert len(installs) == 4
    for command in installs:
        assert "--require-hashes" in command or "--no-deps" in command
        assert (
            "--no-build-isolation" in command
            or "--no-index" in command
            or "requirements-build.lock" in command
        )


def test_both_stages_have_the_same_pinned_base_and_the_second_is_not_root() -> None:
    assert instructions("FROM") == ["python:${PYTHON} AS build", "python:${PYTHON}"]
    version, requirements = instructions("ARG")
    assert requirements == "REQUIREMENTS=requirements.lock"
    assert re.fullmatch(r"PYTHON=3\.\d+\.\d+-slim-\w+", version)
    assert instructions("USER") == ["10001:10001"]
    assert [set(map(int, ports.split())) for ports in instructions("EXPOSE")] == [
        PORTS["pathgauge"]
    ]


def pinned(name: str) -> dict[str, str]:
    """The versions of the packages of a lock file, by name."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))


def test_the_packages_of_judges_extend_those_of_the_collector_at_the_tested_versions() -> None:
    plain, judge, tested = (pinned(f"requirements{kind}.lock") for kind in ("", "-judge", "-dev"))
    assert "openai" not in plain
    assert plain.items() <= judge.items()
    more = {name: version for name, version in judge.items() if name not in plain}
    assert "openai" in more
    assert more.items() <= tested.items()


def test_a_build_argument_selects_the_lock_file() -> None:
    [taken] = [copy for copy in instructions("COPY") if "requirements.lock" in copy]
    assert {"requirements.lock", "requirements-judge.lock"} <= set(taken.split())
    assert SERVICES["pathgauge"]["build"]["args"] == {"REQUIREMENTS": "requirements.lock"}
    [installed] = [run for run in instructions("RUN") if "${REQUIREMENTS}" in run]
    assert "--require-hashes" in installed


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_has_a_version(name: str) -> None:
    assert re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])


@pytest.mark.parametrize("name", SERVICES)
def test_containers_mount_existing_files_and_publish_only_on_loopback(
    name: str,
) -> None:
    service = SERVICES[name]
    for source, target, *mode in (volume.split(":") for volume in service["volumes"]):
        assert target.startswith("/")
        if source.startswith("./"):
            assert (DEPLOY / source).exists(), source
            assert mode == ["ro"]
        else:
            assert source in COMPOSE["volumes"]
    published = [port.split(":") for port in service.get("ports", [])]
    assert all(host == "127.0.0.1" and outside == inside for host, outside, inside in published)
    assert {int(inside) for _, _, inside in published} <= PORTS[name]


@pytest.mark.parametrize("name", SERVICES)
def test_containers_drop_privileges(name: str) -> None:
    service = SERVICES[name]
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert service.get("read_only") or name == "grafana"
    assert set(service.get("depends_on", {})) < set(SERVICES)
    assert set(service["networks"]) <= set(COMPOSE["networks"])


def test_every_address_belongs_to_a_listening_container() -> None:
    files = [
        "compose.yaml",
        "compose/prometheus.yml",
        "grafana/provisioning/datasources/pathgauge.yaml",
    ]
    active = "\n".join(
        line
        for file in files
        for line in (DEPLOY / file).read_text().splitlines()
        if not line.lstrip().startswith("#")
    )
    active = re.sub(r"^ *image: .*$|127\.0\.0\.1:\d+:\d+", "", active, flags=re.MULTILINE)
    addresses = set(re.findall(r"([a-z][a-z-]+):(\d{4})\b", active))
    addresses -= {("localhost", "9464")}  # for browsers
    assert {host for host, _ in addresses} == {
        "pathgauge",
        "tempo",
        "prometheus",
        "alertmanager",
        "otel-collector",
    }
    assert [(host, port) for host, port in addresses if int(port) not in PORTS[host]] == []


def test_prometheus_keeps_exemplars_and_reads_the_shipped_rules() -> None:
    assert "--enable-feature=exemplar-storage" in SERVICES["prometheus"]["command"]
    assert document("compose", "prometheus.yml")["rule_files"] == ["/etc/prometheus/rules.yml"]
    assert (
        "./prometheus/rules.yml:/etc/prometheus/rules.yml:ro" in SERVICES["prometheus"]["volumes"]
    )


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on PATH")
def test_promtool_accepts_the_scrape_configuration() -> None:
    command: list[str | Path] = [
        "promtool",
        "check",
        "config",
        "--syntax-only",
        DEPLOY / "compose" / "prometheus.yml",
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_grafana_finds_the_dashboards_where_they_are_mounted() -> None:
    [provider] = document("grafana", "provisioning", "dashboards", "pathgauge.yaml")["providers"]
    folder = provider["options"]["path"]
    assert f"./grafana/dashboards:{folder}:ro" in SERVICES["grafana"]["volumes"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (DEPLOY / "grafana" / "dashboards" / Path(home).name).exists()
    assert str(Path(home).parent) == folder
