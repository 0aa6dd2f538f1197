"""What an operator does to a running collector: start, reload, repair and stop it, and what it says
meanwhile.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, Signals
from typing import Any

import pytest
import yaml

from support.running import FREE_PORTS, PATHGAUGE, PATIENCE_S, Collector, until
from support.turns import otlp, script, turn

pytestmark = pytest.mark.slow

Serve = Callable[..., Collector]

NEVER = {"settle": "1h", "idle": "1h", "max_age": "1h"}
"""An `assembly` that leaves every trace open."""

REFUND = {"scenario": "refund", "expected_tools": ["lookup", "refund"]}
PARCEL = {"scenario": "parcel", "expected_tools": ["track"]}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts collectors in a folder of the test's own: `serve(criteria={"failure": 0.5})`."""
    started: list[Collector] = []

    def start(**configuration: Any) -> Collector:
        started.append(Collector(tmp_path, **configuration))
        return started[-1]

    yield start
    for collector in started:
        collector.stop()


def send(collector: Collector, *turns: Any) -> None:
    assert collector.post("/v1/traces", otlp(*turns)) == (200, "")


def reload_state(collector: Collector) -> float:
    return collector.value("pathgauge_config_last_reload_successful")


def thresholds(collector: Collector) -> dict[tuple[str, ...], float]:
    return collector.series("pathgauge_threshold", "scenario", "metric")


def refused_start(folder: Path, config: str) -> tuple[int, str]:
    (folder / "pathgauge.yaml").write_text(config)
    done = subprocess.run(
        [PATHGAUGE, "serve", "--config", "pathgauge.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_stop_scores_what_is_still_open_and_says_how_it_went(
    number: Signals, serve: Serve
) -> None:
    collector = serve(assembly=NEVER)
    send(collector, turn(script("", "lookup")), turn(script("", "lookup")))
    assert collector.stop(number) == 0
    assert [line["event"] for line in collector.log()] == ["ready", "stopping", "stopped"]
    [stopped] = collector.events("stopped")
    assert {key: stopped[key] for key in ("spans", "invocations", "scored", "skipped")} == {
        "spans": 8,
        "invocations": 2,
        "scored": 2,
        "skipped": 0,
    }


def test_a_request_under_way_is_finished_and_scored_before_the_stop(serve: Serve) -> None:
    collector = serve(assembly=NEVER)
    body = otlp(turn(script("", "lookup")))
    connection = http.client.HTTPConnection(
        "127.0.0.1", collector.ports["http"], timeout=PATIENCE_S
    )
    connection.putrequest("POST", "/v1/traces")
    connection.putheader("Content-Type", "application/x-protobuf")
    connection.putheader("Content-Length", str(len(body)))
    connection.putheader("Expect", "100-continue")
    connection.endheaders()
    assert connection.sock.recv(1000).startswith(b"HTTP/1.1 100 ")
    collector.signal(SIGTERM)
    assert until(lambda: collector.get("/readyz")[0] == 503)
    assert collector.get("/readyz") == (503, "the collector is stopping\n")
    assert collector.get("/healthz") == (200, "ok\n")
    connection.send(body)
    assert connection.getresponse().status == 200
    connection.close()
    assert collector.stop() == 0
    assert [line["scored"] for line in collector.events("stopped")] == [1]


def test_sighup_puts_changed_criteria_in_force(serve: Serve) -> None:
    collector = serve(criteria={"failure": 0.5})
    send(collector, turn(script("", "lookup")))
    assert until(lambda: thresholds(collector)) == {("", "failure"): 0.5}
    collector.configure(criteria={"failure": 0.25, "latency": 30})
    collector.signal(SIGHUP)
    assert until(lambda: len(thresholds(collector)) == 2)
    assert thresholds(collector) == {("", "failure"): 0.25, ("", "latency"): 30.0}
    assert (reload_state(collector), len(collector.events("reloaded"))) == (1.0, 1)


@contextmanager
def reading_its_configuration(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A collector that waits for the other end of the pipe `pathgauge.yaml`."""
    os.mkfifo(folder / "pathgauge.yaml")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [PATHGAUGE, "serve", "--config", folder / "pathgauge.yaml"], stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_sighup_during_the_start_reloads_after_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with reading_its_configuration(tmp_path) as process:
        with (tmp_path / "pathgauge.yaml").open("w") as pipe:  # it reads now
            process.send_signal(SIGHUP)
            (tmp_path / "pathgauge.yaml").unlink()
            (tmp_path / "pathgauge.yaml").write_text(json.dumps(FREE_PORTS))
            pipe.write(json.dumps(FREE_PORTS))
        assert until(lambda: '"reloaded"' in log.read_text() or process.poll() is not None)
        assert process.poll() is None
        events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
        assert events == ["ready", "reloaded"]


def test_a_sigterm_during_the_start_ends_it_at_once(tmp_path: Path) -> None:
    with (
        reading_its_configuration(tmp_path) as process,
        (tmp_path / "pathgauge.yaml").open("w"),
    ):
        process.send_signal(SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_a_sigterm_while_modules_are_loaded_ends_it_at_once(tmp_path: Path) -> None:
    """Half a second on a busy machine. The first process of a container would ignore the signal."""
    loading = "import os, time\nos.mkfifo('loading')\ntime.sleep(60)\n"
    (tmp_path / "typer.py").write_text(loading)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen([PATHGAUGE, "serve"], cwd=tmp_path, env=environment) as process:
        assert until((tmp_path / "loading").exists)
        process.send_signal(SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_a_configuration_file_that_serve_is_not_told_of_is_named_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "pathgauge.yaml").write_text("")
    with subprocess.Popen(
        [PATHGAUGE, "serve"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()  # also if somebody uses the default ports
        process.terminate()
    assert "a configuration file is not used" in first
    assert "file=pathgauge.yaml hint='--config pathgauge.yaml uses it'" in first


def test_what_only_a_restart_changes_is_said_at_the_reload(serve: Serve) -> None:
    collector = serve(criteria={"failure": 0.5})
    collector.configure(criteria={"failure": 0.5}, assembly={"settle": "1s"}, windows={"size": 50})
    collector.signal(SIGHUP)
    [warning] = until(lambda: collector.events("changed sections need a restart to take effect"))
    assert (warning["level"], warning["sections"]) == ("warning", ["assembly", "windows"])


def test_sighup_puts_another_expected_interval_in_force_and_says_nothing_else(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "references.yaml").write_text(yaml.safe_dump(REFUND))
    collector = serve(references=["references.yaml"], criteria={"failure": 0.5})
    collector.configure(
        references=["references.yaml"],
        criteria={"failure": 0.5},
        scenario={"expected_interval": "1h"},
    )
    collector.signal(SIGHUP)
    intervals = ("pathgauge_expected_interval_seconds", "scenario")
    assert until(lambda: collector.series(*intervals)) == {("refund",): 3600.0}
    assert len(collector.events("reloaded")) == 1
    assert collector.events("changed sections need a restart to take effect") == []
    collector.configure(
        references=["references.yaml"], criteria={"failure": 0.5}, scenario={"keys": ["case"]}
    )
    collector.signal(SIGHUP)
    [warning] = until(lambda: collector.events("changed sections need a restart to take effect"))
    assert warning["sections"] == ["scenario"]


@pytest.mark.parametrize("key", ["max_series", "max_series_total"])
def test_sighup_puts_lower_limits_on_series_in_force_without_further_traffic(
    serve: Serve, key: str
) -> None:
    collector = serve(criteria={"failure": 0.5})
    for number in range(6):
        send(collector, turn(script("", "lookup"), agent=f"agent {number}"))
    assert until(lambda: len(thresholds_of_agents(collector)) == 6)
    limits = {"endpoint": "127.0.0.1:0", key: 12 if key == "max_series_total" else 1}
    collector.configure(criteria={"failure": 0.5}, exporters={"prometheus": limits})
    collector.signal(SIGHUP)
    assert until(lambda: len(thresholds_of_agents(collector)) == 1)
    assert until(
        lambda: len(collector.series("pathgauge_invocation_duration_seconds_count", "agent")) == 1
    )
    assert collector.events("changed sections need a restart to take effect") == []


def thresholds_of_agents(collector: Collector) -> dict[tuple[str, ...], float]:
    return collector.series("pathgauge_threshold", "agent")


def test_sighup_with_a_bad_configuration_changes_nothing_until_it_is_repaired(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "references.yaml").write_text(yaml.safe_dump(REFUND))
    collector = serve(references=["references.yaml"], criteria={"failure": 0.5})
    collector.configure(references=["references.yaml"], criteria={"failur": 0.5})
    collector.signal(SIGHUP)
    [refusal] = until(
        lambda: collector.events("reload failed, the last good configuration stays active")
    )
    assert (refusal["level"], refusal["problem"].split(": ", 1)[1]) == (
        "error",
        "criteria.failur: no scorer 'failur'; did you mean 'failure'?",
    )
    assert until(lambda: reload_state(collector) == 0.0)
    assert collector.get("/readyz") == (200, "ready\n")

    (tmp_path / "references.yaml").write_text(yaml.safe_dump_all([REFUND, PARCEL]))
    assert until(lambda: collector.events("reloaded"))
    assert until(lambda: reload_state(collector) == 0.0), (
        "good references do not mend a bad configuration"
    )

    collector.configure(references=["references.yaml"], criteria={"failure": 0.5})
    collector.signal(SIGHUP)
    assert until(lambda: reload_state(collector) == 1.0)


def test_changed_references_are_noticed_and_bad_ones_leave_the_last_good_set_in_force(
    serve: Serve, tmp_path: Path
) -> None:
    file = tmp_path / "references.yaml"
    file.write_text(yaml.safe_dump(REFUND))
    collector = serve(references=["*s.yaml"], criteria={"tool_trajectory_avg_score": 1.0})

    def score(scenario: str, tool: str) -> None:
        before = collector.value("pathgauge_invocations_total")
        send(collector, turn(script(scenario, tool)))
        assert until(lambda: collector.value("pathgauge_invocations_total") == before + 1)

    def matched() -> dict[tuple[str, ...], float]:
        return collector.series("pathgauge_score_window_mean", "scenario")

    score("parcel", "track")
    assert matched() == {}
    file.write_text(yaml.safe_dump_all([REFUND, PARCEL]))
    assert until(lambda: collector.events("reloaded"))
    score("parcel", "track")
    assert matched() == {("parcel",): 1.0}

    file.write_text("scenario: parcel\nexpected_tool: [other]\n")
    [refusal] = until(
        lambda: collector.events("reload failed, the last good configuration stays active")
    )
    assert refusal["problem"].startswith(f"{file}:2:1: expected_tool: ")
    assert until(lambda: reload_state(collector) == 0.0)
    score("parcel", "track")
    assert matched() == {("parcel",): 1.0}

    file.write_text(yaml.safe_dump({**PARCEL, "expected_tools": ["track", "tell"]}))
    assert until(lambda: reload_state(collector) == 1.0)
    assert until(lambda: not matched()) is True, (
        "scores against the former reference are not mixed with the new ones"
    )
    score("parcel", "track")
    assert matched() == {("parcel",): 0.0}


def test_a_new_reference_file_is_noticed(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "references").mkdir()
    collector = serve(references=["references/*.yaml"], criteria={"tool_trajectory_avg_score": 1.0})
    warnings = [line["warning"] for line in collector.log() if line["level"] == "warning"]
    assert warnings[0].startswith(f"{tmp_path}/pathgauge.yaml:1:")
    assert [warning.partition(" references[0]: ")[2] or warning for warning in warnings] == [
        f"no file matches the references 'references/*.yaml' in {tmp_path}",
        "there are no references, which these criteria need: tool_trajectory_avg_score",
    ]
    (tmp_path / "references" / "parcel.yaml").write_text(yaml.safe_dump(PARCEL))
    [line] = until(lambda: collector.events("reloaded"))
    assert line["references"] == 1


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("receivers.otlp.protocols.grpc", "5:19"),
        ("receivers.otlp.protocols.http", "7:19"),
        ("exporters.prometheus", "10:15"),
    ],
)
def test_a_port_in_use_stops_the_start_and_is_named_with_its_place(
    key: str, place: str, tmp_path: Path
) -> None:
    config = json.loads(json.dumps(FREE_PORTS))
    section = config
    for step in key.split("."):
        section = section[step]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        section["endpoint"] = endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        assert refused_start(tmp_path, yaml.safe_dump(config, sort_keys=False)) == (
            2,
            f"pathgauge: pathgauge.yaml:{place}: {key}.endpoint: cannot listen on {endpoint}:"
            " Address already in use\n"
            "pathgauge: end the program that uses the port, such as `make run`, or choose another"
            " `endpoint` in the configuration\n",
        )


def test_a_host_that_is_not_of_this_machine_stops_the_start_and_is_named(tmp_path: Path) -> None:
    config = {
        **FREE_PORTS,
        "insecure_bind": True,
        "exporters": {"prometheus": {"endpoint": "192.0.2.1:9464"}},
    }
    status, problem = refused_start(tmp_path, json.dumps(config))
    assert (status, problem.splitlines()[-1]) == (
        2,
        "pathgauge: pathgauge.yaml:1:157: exporters.prometheus.endpoint: cannot listen on"
        " 192.0.2.1:9464: Cannot assign requested address",
    )


def test_a_folder_of_the_store_that_is_none_is_named_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    config = yaml.safe_dump({**FREE_PORTS, "store": {"path": "data"}}, sort_keys=False)
    assert refused_start(tmp_path, config) == (
        2,
        f"pathgauge: pathgauge.yaml:14:9: store.path: found {tmp_path}/data, expected a folder that"
        " can be written to: File exists\n",
    )


def test_bad_configuration_stops_the_start_with_file_line_column_and_key(tmp_path: Path) -> None:
    assert refused_start(tmp_path, "criteria:\n  failure: 2\nassembly: {settle: 6 seconds}\n") == (
        2,
        (
            "pathgauge: pathgauge.yaml:2:12: criteria.failure.threshold: found 2, expected a number"
            " from 0 to 1\npathgauge: pathgauge.yaml:3:20: assembly.settle: found '6 seconds',"
            " expected a duration such as 6s, 10m or 1h30m\n"
        ),
    )


def test_bad_references_stop_the_start(tmp_path: Path) -> None:
    (tmp_path / "references.yaml").write_text("scenario: parcel\nexpected_tool: [other]\n")
    status, problem = refused_start(tmp_path, "references: [references.yaml]\n")
    assert (status, problem.startswith("pathgauge: references.yaml:2:1: expected_tool: ")) == (
        2,
        True,
    )


def test_the_start_says_what_is_in_force(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "references.yaml").write_text(yaml.safe_dump_all([REFUND, PARCEL]))
    collector = serve(
        references=["references.yaml"], criteria={"tool_trajectory_avg_score": 1.0, "failure": None}
    )
    [ready] = collector.events("ready")
    assert (ready["references"], ready["criteria"]) == (2, ["tool_trajectory_avg_score", "failure"])
