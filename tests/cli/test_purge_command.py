"""`pathgauge purge`, with a collector that runs on the store and without one."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from structlog.testing import capture_logs
from typer.testing import Result

from pathgauge.collector.cli.output.purged import report
from pathgauge.collector.cli.purge_selection import select
from pathgauge.collector.service import control_socket
from pathgauge.collector.service.control_socket import ControlServer
from pathgauge.collector.service.purge import purge_store
from pathgauge.collector.store import Purged, Selection, StoreError
from support.evaluated import commit, evaluation, opened
from support.running import PATHGAUGE, PATIENCE_S, Collector, until
from support.turns import otlp, script, trace_id, turn

Run = Callable[..., Result]
Serve = Callable[..., Collector]

STORED = 3_000
"""Results of a scenario that is purged in several steps."""
NEVER = {"settle": "1h", "idle": "1h", "max_age": "1h"}
"""An `assembly` that leaves every trace open."""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts collectors with a store on disk, in the folder of the test."""
    started: list[Collector] = []

    def start(**configuration: Any) -> Collector:
        (tmp_path / "references.yaml").write_text(
            "scenario: refund\nexpected_tools: []\n---\nscenario: parcel\nexpected_tools: []\n"
        )
        files = {"references": ["references.yaml"], "store": {"path": "data"}}
        started.append(Collector(tmp_path, criteria={"failure": 0.5}, **files, **configuration))
        return started[-1]

    yield start
    for collector in started:
        collector.stop()


def purge(folder: Path, *options: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of the real command."""
    done = subprocess.run(
        [PATHGAUGE, "purge", "--config", "pathgauge.yaml", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def send(collector: Collector, *turns: Any) -> None:
    assert collector.post("/v1/traces", otlp(*turns)) == (200, "")


def samples(collector: Collector) -> dict[tuple[str, ...], float]:
    """The number of scores in the windows, by scenario."""
    return collector.series("pathgauge_score_window_samples", "scenario")


def named(scenario: str) -> list[ReadableSpan]:
    return list(turn(script(scenario, "lookup")))


@pytest.mark.slow
def test_a_running_collector_purges_a_trace_and_goes_on(serve: Serve, tmp_path: Path) -> None:
    collector = serve()
    secret = named("refund")
    send(collector, secret, named("refund"), named("parcel"))
    assert until(lambda: samples(collector) == {("refund",): 2, ("parcel",): 1}), samples(collector)
    assert purge(tmp_path, "--trace", trace_id(secret).upper()) == (
        0,
        "data: removed it from 1 request, 1 result\n",
        "",
    )
    assert samples(collector) == {("refund",): 1, ("parcel",): 1}
    send(collector, secret, named("parcel"))
    assert until(lambda: samples(collector).get(("parcel",)) == 2)
    assert until(lambda: collector.value("pathgauge_spans_dropped_total", reason="purged")) == len(
        secret
    )
    assert samples(collector)["refund",] == 1
    [line] = collector.events("purged")
    assert {key: line[key] for key in ("trace_id", "requests", "results")} == {
        "trace_id": trace_id(secret),
        "requests": 1,
        "results": 1,
    }
    assert oct((tmp_path / "data" / "control").stat().st_mode & 0o777) == "0o600"
    assert collector.stop() == 0
    assert not (tmp_path / "data" / "control").exists()


@pytest.mark.slow
def test_senders_are_accepted_while_a_scenario_is_purged(serve: Serve, tmp_path: Path) -> None:
    with opened(tmp_path / "data") as store:
        many = [evaluation(f"past-{number}", scenario="refund") for number in range(STORED)]
        commit(store, many, time.time())
    collector = serve()
    with ThreadPoolExecutor(1) as threads:
        purging = threads.submit(purge, tmp_path, "--scenario", "refund")
        sent = 0
        while not purging.done():
            send(collector, named("parcel"))  # fails unless it is accepted
            sent += 1
    assert purging.result() == (0, f"data: removed it from {STORED} results\n", "")
    assert sent > 1
    assert until(lambda: collector.value("pathgauge_invocations_scored_total") == sent)
    assert samples(collector).keys() == {("parcel",)}


@pytest.mark.slow
def test_a_purge_of_a_stopped_collector_is_done_when_it_starts_again(
    serve: Serve, tmp_path: Path
) -> None:
    collector = serve(assembly=NEVER)
    secret = named("refund")
    send(collector, secret, named("parcel"))
    collector.stop(SIGKILL)
    assert purge(tmp_path, "--trace", trace_id(secret)) == (
        0,
        "data: removed it from 1 request\n",
        "",
    )
    collector = serve()
    assert until(lambda: samples(collector)) == {("parcel",): 1}
    assert purge_store(tmp_path / "data", Selection(scenario="parcel")) == Purged(1, 1)
    assert samples(collector) == {}
    collector.stop()
    assert purge(tmp_path, "--before", "0s") == (0, "data: found nothing to remove\n", "")


def test_a_folder_without_a_store_is_an_error_and_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(
        StoreError,
        match=r"^store.path: found no store in .*/data, expected the folder of a collector$",
    ):
        purge_store(tmp_path / "data", Selection(before=1.0))
    assert list(tmp_path.iterdir()) == []


NOW = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("7d", NOW - 7 * 86_400),
        ("1h30m", NOW - 5400),
        ("2026-10-31", NOW - 86_400),
        ("2026-10-31T12:00", NOW - 43_200),
        ("2026-10-31T12:00Z", NOW - 43_200),
        ("2026-10-31T12:00+02:00", NOW - 50_400),
    ],
)
def test_a_time_is_an_age_or_a_date(before: str, expected: float) -> None:
    assert select(None, None, None, before, NOW) == Selection(before=expected)


@pytest.mark.parametrize(
    ("purged", "words"),
    [
        (Purged(), "found nothing to remove"),
        (Purged(1, 1, 1), "removed it from 1 request, 1 result, 1 damaged row or file"),
        (Purged(0, 2, 0), "removed it from 2 results"),
        (Purged(3, 0, 2), "removed it from 3 requests, 2 damaged rows and files"),
    ],
)
def test_the_report_says_what_was_removed(purged: Purged, words: str) -> None:
    assert report(purged) == words


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "expected exactly one of --trace, --scenario, --tenant and --before"),
        (
            ("--scenario", "a", "--before", "7d"),
            "expected exactly one of --trace, --scenario, --tenant and --before",
        ),
        (
            ("--scenario", "a", "--tenant", "b"),
            "expected exactly one of --trace, --scenario, --tenant and --before",
        ),
        (
            ("--trace", "4bf92f"),
            "--trace: found '4bf92f', expected the 32 hexadecimal digits of a trace id",
        ),
        (
            ("--trace", "0" * 32),
            f"--trace: found '{'0' * 32}', expected the 32 hexadecimal digits of a trace id",
        ),
        (
            ("--trace", "g" * 32),
            f"--trace: found '{'g' * 32}', expected the 32 hexadecimal digits of a trace id",
        ),
        (("--scenario", ""), "--scenario: found nothing, expected a scenario id"),
        (("--tenant", ""), "--tenant: found nothing, expected the name of a tenant"),
        (
            ("--before", "a week"),
            (
                "--before: found 'a week', expected an age such as 7d or 12h, or a date such as"
                " 2026-11-01 or 2026-11-01T12:00Z"
            ),
        ),
        (
            ("--before", "9999-01-01"),
            "--before: found '9999-01-01', expected a time in the past",
        ),
    ],
)
def test_invalid_selections_are_rejected(
    options: tuple[str, ...], problem: str, run: Run, folder: Path
) -> None:
    (folder / "pathgauge.yaml").write_text("criteria: {failure: 0.5}\n")
    result = run("purge", "-c", "pathgauge.yaml", *options)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"pathgauge: {problem}\n")
    assert [path.name for path in folder.iterdir()] == ["pathgauge.yaml"]


def test_there_is_nothing_to_purge_in_memory(run: Run, folder: Path) -> None:
    (folder / "pathgauge.yaml").write_text("criteria: {failure: 0.5}\nstore: memory\n")
    result = run("purge", "-c", "pathgauge.yaml", "--before", "7d")
    text = (
        "pathgauge.yaml:2:8: store: found memory, expected a store on disk: data in memory is lost"
        " when the process ends"
    )
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"pathgauge: {text}\n")


@pytest.mark.parametrize("kind", ["scenario", "tenant"])
def test_a_misspelt_name_is_told_from_one_that_is_purged_already(
    kind: str, run: Run, folder: Path
) -> None:
    (folder / "pathgauge.yaml").write_text("criteria: {failure: 0.5}\nstore: {path: data}\n")
    with opened(folder / "data") as store:
        commit(store, [evaluation(one, scenario=one, tenant=one) for one in ("parcel", "refund")])

    def purged(name: str) -> tuple[int, str, str]:
        result = run("purge", "-c", "pathgauge.yaml", f"--{kind}", name)
        return result.exit_code, result.stdout, result.stderr

    nothing = "data: found nothing to remove\n"
    said = f"pathgauge: {kind}: found {{!r}}, expected a {kind} with results, such as {{}}\n"
    near = "parcel, refund; did you mean 'refund'?"
    assert purged("refnud") == (0, nothing, said.format("refnud", near))
    assert purged("refund") == (0, "data: removed it from 1 result\n", "")
    assert purged("refund") == (0, nothing, said.format("refund", "parcel"))
    assert purged("parcel") == (0, "data: removed it from 1 result\n", "")
    assert purged("parcel") == (0, nothing, "")


async def asked(folder: Path, selection: Selection) -> Purged:
    return await asyncio.to_thread(control_socket.ask, folder, selection)


class Purger:
    """Stands in for the collector behind the control socket."""

    def __init__(self, *answers: Purged | Exception) -> None:
        self.asked: list[Selection] = []
        self._answers = iter(answers)

    async def purge(self, selection: Selection) -> Purged:
        self.asked.append(selection)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_the_answer_of_the_collector_has_no_internal_fields(
    tmp_path: Path,
) -> None:
    done = Purged(3, 2, 1, "the disk is full", frozenset({("", "t")}), frozenset({("", "t", "s")}))
    purger = Purger(done, StoreError("nothing was removed"), RuntimeError("no luck"))
    server = ControlServer(tmp_path, purger.purge)
    await server.start()
    selections = [Selection(trace_id="a" * 32), Selection(scenario="ünï"), Selection(before=1.5)]
    assert await asked(tmp_path, selections[0]) == Purged(3, 2, 1, "the disk is full")
    with pytest.raises(StoreError, match="nothing was removed"):
        await asked(tmp_path, selections[1])
    with (
        capture_logs() as logs,
        pytest.raises(StoreError, match="see the log of the collector"),
    ):
        await asked(tmp_path, selections[2])
    assert [entry["event"] for entry in logs] == ["purge failed"]
    assert purger.asked == selections
    await server.stop()


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"hello\n",
        b'{"purge": {}}\n',
        b'{"purge": {"before": 1, "tenant": "a"}}\n',
        b'{"drop": 1}\n',
    ],
)
async def test_an_unknown_request_removes_nothing(line: bytes, tmp_path: Path) -> None:
    purger = Purger()
    server = ControlServer(tmp_path, purger.purge)
    await server.start()
    reader, writer = await asyncio.open_unix_connection(tmp_path / "control")
    writer.write(line)
    answer = json.loads(await reader.readline())
    writer.close()
    assert (answer["purged"], "another version" in answer["error"], purger.asked) == (
        None,
        True,
        [],
    )
    await server.stop()


async def test_closed_connections_and_long_lines_do_no_harm(tmp_path: Path) -> None:
    server = ControlServer(tmp_path, Purger(Purged()).purge)
    await server.start()
    for said in (b"", b'{"purge"', bytes(200_000)):
        reader, writer = await asyncio.open_unix_connection(tmp_path / "control")
        writer.write(said)
        if len(said) < 1000:
            writer.write_eof()
        assert b"purged" not in (await reader.read()).replace(b'"purged":null', b"")
        writer.close()
    assert await asked(tmp_path, Selection(before=1.0)) == Purged()
    await server.stop()


async def test_a_left_over_socket_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(tmp_path / "control"))
    with pytest.raises(
        StoreError,
        match=r"does not answer .*; it may be starting or stopping: try again, or stop it first",
    ):
        await asked(tmp_path, Selection(before=1.0))
    server = ControlServer(tmp_path, Purger(Purged()).purge)
    await server.start()
    assert await asked(tmp_path, Selection(before=1.0)) == Purged()
    await server.stop()


async def test_a_socket_that_cannot_be_removed_does_not_end_the_stop(tmp_path: Path) -> None:
    server = ControlServer(tmp_path, Purger().purge)
    await server.start()
    (tmp_path / control_socket.SOCKET).unlink()
    (tmp_path / control_socket.SOCKET).mkdir()  # as on a disk that cannot be written to
    await server.stop()


async def test_a_stop_closes_waiting_connections(tmp_path: Path) -> None:
    waiting = asyncio.Event()

    async def forever(_: Selection) -> Purged:
        waiting.set()
        await asyncio.Event().wait()
        return Purged()

    server = ControlServer(tmp_path, forever)
    await server.start()
    answer = asyncio.create_task(asked(tmp_path, Selection(before=1.0)))
    await waiting.wait()
    await server.stop()
    with pytest.raises(StoreError, match="stopped before it answered; purge again"):
        await answer
    await server.stop()


async def test_with_a_path_too_long_for_a_socket_the_collector_runs_without_it(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    server = ControlServer(folder, Purger().purge)
    with capture_logs() as logs:
        await server.start()
    assert [(entry["log_level"], entry["error"]) for entry in logs] == [
        ("warning", "AF_UNIX path too long")
    ]
    await server.stop()
    with pytest.raises(StoreError, match=r"does not answer .AF_UNIX path too long.*stop it first"):
        await asked(folder, Selection(before=1.0))
