"""The service in this process: concurrent reloads, failing scorers, and a companion task."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from pathgauge.collector import config
from pathgauge.collector.service.run import run
from pathgauge.collector.service.service import Service
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score
from support.running import FREE_PORTS, PATIENCE_S
from support.turns import otlp, script, turn

unblock = threading.Event()
entered = threading.Event()


@dataclass(frozen=True)
class Slow:
    """A scorer that fails when it is built with some options, and when it scores with another."""

    name: ClassVar[str] = "slow"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    wait: bool = False
    fail: bool = False
    busy: bool = False

    def __post_init__(self) -> None:
        if self.fail:
            raise RuntimeError("out of luck")
        if self.wait:
            entered.set()
            unblock.wait(PATIENCE_S)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        if self.busy:
            entered.set()
            unblock.wait(PATIENCE_S)
        return Score(1.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write(tmp_path / "pathgauge.yaml", 0.1)
    return tmp_path / "pathgauge.yaml"


@pytest_asyncio.fixture(name="service")
async def _service(path: Path) -> AsyncIterator[Service]:
    service = Service(config.load(path), path)
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
def interpreter() -> Iterator[None]:
    """Undoes the changes of `run` to the interpreter."""
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()
    sys.setswitchinterval(interval)


def write(path: Path, threshold: float, **options: Any) -> None:
    criteria = {"slow": {"scorer": f"{__name__}:Slow", "threshold": threshold, **options}}
    path.write_text(
        json.dumps({**FREE_PORTS, "assembly": {"settle": 0, "idle": 0}, "criteria": criteria})
    )


async def ask(
    service: Service, server: str, method: str, page: str, body: bytes = b""
) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        connection = http.client.HTTPConnection(
            "127.0.0.1", service.ports[server], timeout=PATIENCE_S
        )
        try:
            connection.request(method, page, body, {"Content-Type": "application/x-protobuf"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


async def send(service: Service) -> int:
    """Send one invocation; returns the answer."""
    return (await ask(service, "http", "POST", "/v1/traces", otlp(turn(script("")))))[0]


async def shown(service: Service, line: str) -> str:
    """`/metrics`, once it contains this line."""
    for _ in range(1000):
        _, page = await ask(service, "metrics", "GET", "/metrics")
        if line in page.splitlines():
            break
        await asyncio.sleep(0.01)
    return page


async def readiness(service: Service, status: int) -> tuple[int, str]:
    """The text of `/readyz`, once it has this status."""
    for _ in range(1000):
        answer = await ask(service, "metrics", "GET", "/readyz")
        if answer[0] == status:
            break
        await asyncio.sleep(0.01)
    return answer


async def threshold(service: Service, expected: str) -> str:
    """The threshold of the only agent on `/metrics`, once it is the expected one: the pipeline
    applies it between two steps.
    """
    assert await send(service) == 200
    found = ""
    for _ in range(1000):
        _, page = await ask(service, "metrics", "GET", "/metrics")
        lines = (line for line in page.splitlines() if line.startswith("pathgauge_threshold{"))
        found = " ".join(line.rpartition(" ")[2] for line in lines)
        if found == expected:
            break
        await asyncio.sleep(0.01)
    return found


async def test_of_two_reloads_the_later_one_wins_though_the_earlier_one_takes_longer(
    service: Service, path: Path
) -> None:
    unblock.clear()
    entered.clear()
    write(path, 0.2, wait=True)
    first = asyncio.create_task(service.reload())
    assert await asyncio.to_thread(entered.wait, PATIENCE_S)
    write(path, 0.3)
    second = asyncio.create_task(service.reload())
    await asyncio.wait([second], timeout=0.3)
    unblock.set()
    assert [await first, await second] == [True, True]
    assert await threshold(service, "0.3") == "0.3"


async def test_a_reload_that_a_scorer_breaks_leaves_what_was_in_force(
    service: Service, path: Path
) -> None:
    write(path, 0.2, fail=True)
    with capture_logs() as logs:
        assert not await service.reload()
    [entry] = logs
    assert (entry["event"], entry["log_level"]) == (
        "reload failed, the last good configuration stays active",
        "error",
    )
    assert entry["problem"].endswith(" cannot be built: RuntimeError: out of luck")
    assert await threshold(service, "0.1") == "0.1"
    assert (
        "pathgauge_config_last_reload_successful 0.0"
        in (await ask(service, "metrics", "GET", "/metrics"))[1]
    )
    write(path, 0.3)
    assert await service.reload()
    assert await threshold(service, "0.3") == "0.3"


async def test_the_collector_is_ready_only_while_it_listens(path: Path) -> None:
    service = Service(config.load(path), path)
    assert service.totals == {"spans": 0, "invocations": 0, "scored": 0, "skipped": 0}
    await service.start()
    assert await ask(service, "metrics", "GET", "/readyz") == (200, "ready\n")
    await service.stop()
    with pytest.raises(ConnectionRefusedError):
        await ask(service, "metrics", "GET", "/readyz")


async def test_a_collector_that_is_too_far_behind_is_not_ready_and_tells_senders_to_retry(
    path: Path,
) -> None:
    unblock.clear()
    entered.clear()
    write(path, 0.1, busy=True)
    path.write_text(json.dumps({**json.loads(path.read_text()), "store": {"max_backlog_age": 0.1}}))
    service = Service(config.load(path), path)
    await service.start()
    try:
        assert await send(service) == 200
        assert await asyncio.to_thread(entered.wait, PATIENCE_S)
        assert await send(service) == 200
        reason = "scoring is further behind than store.max_backlog_age: senders are told to retry\n"
        assert await readiness(service, 503) == (503, reason)
        assert await send(service) == 429
        unblock.set()
        assert await readiness(service, 200) == (200, "ready\n")
    finally:
        unblock.set()
        await service.stop()


async def test_a_score_against_an_earlier_reference_enters_no_window_of_a_later_one(
    path: Path,
) -> None:
    unblock.clear()
    entered.clear()
    write(path, 0.1, busy=True)
    references = path.parent / "references.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "references": [references.name]}))
    references.write_text(json.dumps({"scenario": "refund", "expected_tools": ["before"]}))
    service = Service(config.load(path), path)
    await service.start()
    try:
        assert (await ask(service, "http", "POST", "/v1/traces", otlp(turn(script("refund")))))[
            0
        ] == 200
        assert await asyncio.to_thread(entered.wait, PATIENCE_S)
        references.write_text(json.dumps({"scenario": "refund", "expected_tools": ["after"]}))
        assert await service.reload()
        unblock.set()
        page = await shown(service, "pathgauge_invocations_scored_total 1.0")
        assert [
            line for line in page.splitlines() if line.startswith("pathgauge_score_window_mean")
        ] == []
    finally:
        unblock.set()
        await service.stop()


async def test_a_scenario_without_reference_is_logged_with_the_closest_known_one(
    path: Path,
) -> None:
    references = path.parent / "references.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "references": [references.name]}))
    references.write_text(json.dumps({"scenario": "refund_order", "expected_tools": ["refund"]}))
    service = Service(config.load(path), path)
    await service.start()
    try:
        with capture_logs() as logs:
            body = otlp(turn(script("refund_oder")))
            assert (await ask(service, "http", "POST", "/v1/traces", body))[0] == 200
            await shown(service, "pathgauge_invocations_scored_total 1.0")
        page = (await ask(service, "metrics", "GET", "/debug/scenarios"))[1]
        assert "refund_oder" in page
        assert "refund_order" in page
    finally:
        await service.stop()
    assert [line for line in logs if line["log_level"] == "warning"] == [
        {
            "event": "no reference has this scenario id",
            "log_level": "warning",
            "scenario": "refund_oder",
            "closest": ("refund_order",),
        }
    ]


async def test_an_endpoint_that_cannot_be_had_leaves_nothing_running(
    path: Path, service: Service
) -> None:
    settings = json.loads(path.read_text())
    settings["receivers"]["otlp"]["protocols"]["http"]["endpoint"] = (
        f"127.0.0.1:{service.ports['http']}"
    )
    path.write_text(json.dumps(settings))
    threads = threading.active_count()
    second = Service(config.load(path), path)
    with pytest.raises(
        OSError,
        match=(
            "^receivers.otlp.protocols.http.endpoint: cannot listen on"
            f" 127.0.0.1:{service.ports['http']}: Address already in use$"
        ),
    ):
        await second.start()
    with pytest.raises(ConnectionRefusedError):
        await ask(second, "metrics", "GET", "/healthz")
    assert [thread.name for thread in threading.enumerate()].count("pipeline") == 1
    assert threading.active_count() <= threads + 3  # those of the loop's pool stay


@pytest.mark.usefixtures("interpreter")
async def test_what_fails_beside_the_service_ends_it_with_its_error(path: Path) -> None:
    async def fail(service: Service) -> None:
        assert (await ask(service, "metrics", "GET", "/readyz"))[0] == 200
        raise OSError("the table is gone")

    with pytest.raises(OSError, match="the table is gone"):
        await asyncio.wait_for(run(Service(config.load(path), path), fail), PATIENCE_S)


@pytest.mark.usefixtures("interpreter")
async def test_what_ends_beside_the_service_ends_it(path: Path) -> None:
    async def do_nothing(service: Service) -> None:
        pass

    with capture_logs() as logs:
        await asyncio.wait_for(run(Service(config.load(path), path), do_nothing), PATIENCE_S)
    assert [entry["event"] for entry in logs] == ["ready", "stopping", "stopped"]
