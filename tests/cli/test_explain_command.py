"""`pathgauge explain` shows since when scores are worse, and what changed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import Result

from pathgauge.collector.api.drifts import report
from pathgauge.collector.api.queries import DriftQuery
from pathgauge.collector.cli.output.drift import print_drift
from pathgauge.collector.core.drift.drift import SeriesKey
from pathgauge.collector.core.drift.policy import DriftPolicy
from pathgauge.collector.core.drift.registry import Drifts
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traffic.drift import AgentKey, TrafficDrift, TrafficStatus
from pathgauge.collector.sinks.prometheus.drift.recording import NAME, explained
from pathgauge.collector.sinks.prometheus.labels import AgentVersion
from pathgauge.collector.sinks.prometheus.traffic.recording import NAME as TRAFFIC_NAME
from pathgauge.collector.store import Progress
from support.api_client import client, sources, with_tokens
from support.drifted import MEASURE, WALL, drifted
from support.evaluated import opened
from support.postgres import server
from support.serving import serving
from support.shared_database import gauge
from support.watched_traffic import watched

Run = Callable[..., Result]

DRIFTS = drifted(SeriesKey("support", "refund", "f1"))
VERSIONS = {AgentVersion("support", "2.5.0"): WALL}
TRAFFIC = watched("shopper")
SHOPPER = AgentKey("", "shopper")
TENANTS = ("north", "south")


def snapshot(traffic: TrafficDrift) -> list[TrafficStatus]:
    return traffic.snapshot(time.time())


@pytest.fixture(scope="module")
def counts() -> Sequence[Row]:
    key, state = next(one for one in DRIFTS.pending() if one[0].scenario)
    return [
        Row((NAME, key.tenant, key.agent, key.scenario, key.metric, key.judge), [state]),
        Row(("version_first_seen", "support", "2.5.0"), [WALL]),
        Row((TRAFFIC_NAME, *SHOPPER), [TRAFFIC.state(SHOPPER)]),
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, counts: Sequence[Row]) -> Path:
    folder = tmp_path_factory.mktemp("collector")
    (folder / "pathgauge.yaml").write_text("store: {path: data}\n")
    with opened(folder / "data") as opened_store:
        assert opened_store.commit(Progress(0, 0.0, WALL, [], counts=counts))
    return folder


@pytest.fixture(scope="module")
def cluster(store: Path, counts: Sequence[Row]) -> Iterator[Path]:
    """The configuration of a cluster with the same counts in PostgreSQL."""
    with server() as postgres:
        address = postgres.database()
        with gauge(address) as shared:
            assert shared.try_acquire()
            shared.commit(counts, {}, WALL)
        kafka = {"client": {"bootstrap.servers": "127.0.0.1:1"}}
        file = store / "cluster.yaml"
        file.write_text(json.dumps({"kafka": kafka, "postgres": {"conninfo": address}}))
        yield file


@pytest.fixture(scope="module")
def served(store: Path) -> Iterator[str]:
    found = sources(
        None,
        drifts=lambda: explained(DRIFTS, VERSIONS),
        traffic=lambda: TRAFFIC.snapshot(time.time()),
    )
    app = client(found, with_tokens(store)).app
    with serving(app) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def explain(source: Sequence[object], run: Run) -> Run:
    """`explain` with the store, and with the API."""
    return lambda *options: run("explain", *options, *source)


@pytest.mark.parametrize(
    ("section", "alert"),
    [
        ({"false_alarm_interval": "5d"}, "yes"),
        ({}, "no"),
        (False, None),
    ],
)
def test_an_alert_is_that_of_the_configured_interval(
    run: Run, tmp_path: Path, section: object, alert: str | None
) -> None:
    key = SeriesKey("support", "refund", "f1")
    drifts, number = Drifts(DriftPolicy(evidence_days=5.0)), 0
    while not any(one.alarm for one in drifts.snapshot()):
        drifts.observe(key, MEASURE, float(number < 50), WALL + 600 * number)
        number += 1
    [(_, state)] = drifts.pending()
    (tmp_path / "pathgauge.yaml").write_text(
        json.dumps({"store": {"path": "data"}, "drift": section})
    )
    with opened(tmp_path / "data") as store:
        counts = [Row((NAME, "", "support", "refund", "f1", ""), [state])]
        assert store.commit(Progress(0, 0.0, WALL, [], counts=counts))
    found = run("explain", "support", "--config", tmp_path / "pathgauge.yaml")
    assert found.exit_code == 0
    if alert is None:
        assert found.stdout == ""
    else:
        heading, stream, *_ = (line.split("\t") for line in found.stdout.splitlines())
        assert dict(zip(heading, stream, strict=True))["alert"] == alert


def test_it_shows_the_change_and_what_changed(explain: Run) -> None:
    found = explain("support", "refund")
    assert (found.exit_code, found.stderr) == (0, "")
    lines = [line.split("\t") for line in found.stdout.splitlines()]
    stream = dict(zip(lines[0], lines[1], strict=True))
    assert stream == {
        "evidence (days)": ">36500",
        "adjusted (days)": ">36500",
        "alert": "yes",
        "scenario": "refund",
        "metric": "f1",
        "against": "threshold",
        "since": "2026-11-23 03:03 UTC",
        "after version": "2.5.0",
        "mean": "0.000",
        "before": "1.000",
        "baseline": "0.900",
        "scores": "40",
    }
    assert lines[-1] == ["refund", "f1", "missing", "search", "", "1.000", "1.000", "0.000"]


def test_rows_of_several_tenants_name_their_tenant(capsys: pytest.CaptureFixture[str]) -> None:
    drifts = drifted(*(SeriesKey("support", "refund", "f1", tenant=one) for one in TENANTS))
    tool_calls = [one for name in TENANTS for one in snapshot(watched("support", tenant=name))]
    found = sources(None, drifts=lambda: explained(drifts), traffic=lambda: tool_calls)
    print_drift(report(found, None, DriftQuery(agent="support")), Console(width=1000))
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines if line[0] == "tenant"] == ["tenant"] * 6
    rows = [tuple(line) for line in lines if len(line) > 1 and line[0] != "tenant"]
    assert {row[0] for row in rows} == set(TENANTS)
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize(("bad", "alert"), [(6, "no"), (40, "yes")])
def test_an_alert_is_said_in_words(
    bad: int, alert: str, capsys: pytest.CaptureFixture[str]
) -> None:
    drifts = drifted(SeriesKey("support", "refund", "f1"), bad=bad)
    found = sources(None, drifts=lambda: explained(drifts))
    print_drift(report(found, None, DriftQuery(agent="support")), Console(width=1000))
    headings, row = (line.split("\t") for line in capsys.readouterr().out.splitlines()[:2])
    assert dict(zip(headings, row, strict=True))["alert"] == alert


def test_json_is_the_answer_of_the_api(explain: Run) -> None:
    found = json.loads(explain("support", "--json").stdout)
    assert [stream["alarm"] for stream in found["streams"]] == [True]


def test_it_shows_which_tool_calls_of_an_agent_changed(explain: Run) -> None:
    found = explain("shopper")
    assert (found.exit_code, found.stderr) == (0, "")
    lines = [line.split("\t") for line in found.stdout.splitlines()]
    stream = dict(zip(lines[0], lines[1], strict=True))
    assert float(stream.pop("evidence (days)")) >= 365
    assert stream.pop("invocations").isdigit()
    assert stream == {
        "tool calls of": "known versions",
        "status": "diverging",
        "alert": "yes",
        "since": "2026-12-03 12:13 UTC",
        "still needed": "",
    }
    changes = [[line[0], line[1], line[2], *line[4:]] for line in lines[4:]]
    assert ["tool", "fetch", "new", "1.000", "0.000"] in changes


def test_tool_calls_have_no_scenario(explain: Run) -> None:
    assert "no scores" in explain("shopper", "refund").stderr


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["support", "shopper"])
def test_it_reads_postgres_like_a_folder(store: Path, cluster: Path, run: Run, agent: str) -> None:
    of_folder, of_cluster = (
        run("explain", agent, "--json", "--config", file)
        for file in (store / "pathgauge.yaml", cluster)
    )
    assert (of_cluster.exit_code, of_cluster.stderr) == (0, "")
    assert of_cluster.stdout == of_folder.stdout
    found = json.loads(of_cluster.stdout)
    assert len(found["streams"]) + len(found["traffic"]) == 1


def test_an_unknown_agent_is_no_error(explain: Run) -> None:
    found = explain("nobody")
    assert (found.exit_code, found.stdout) == (0, "")
    assert found.stderr == (
        "pathgauge: no scores of this agent, scenario and metric were compared yet\n"
        "pathgauge: agents that were watched: shopper, support\n"
    )
    assert explain("suport").stderr.endswith("support; did you mean 'support'?\n")
    assert explain("support", "refnd").stderr.endswith(
        "\npathgauge: support has scenarios: refund; metrics: f1\n"
    )
