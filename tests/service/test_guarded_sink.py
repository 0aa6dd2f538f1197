"""A sink of a plug-in that fails or does not return: it is counted and told which one it is."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.service.guarded_sink import LOG_INTERVAL_S, STUCK_S, GuardedSink
from support.packages import install
from support.running import FREE_PORTS, QUICK, Collector, until
from support.turns import otlp, script, turn

KEY = ("", "trace", "span")

WAITING = """
import time
from dataclasses import dataclass
from pathgauge import SinkType


@dataclass(frozen=True)
class Options:
    seconds: float


class Waiting:
    def __init__(self, seconds):
        self.seconds = seconds

    def publish(self, evaluation, now):
        time.sleep(self.seconds)

    def publish_judged(self, judged, now): ...
    def publish_conversation(self, result, now): ...
    def withdraw(self, key): ...
    def close(self): ...


WAITING = SinkType(Options, lambda options, context: Waiting(options.seconds))
"""


class Broken:
    """Every call fails."""

    def __getattr__(self, name: str) -> Any:
        raise ConnectionError(name)


class Blocked(Broken):
    """A call returns when it is told."""

    def __init__(self) -> None:
        self.called, self.returns = threading.Event(), threading.Event()

    def withdraw(self, key: object) -> None:
        self.called.set()
        self.returns.wait()


def test_every_failure_is_counted_and_one_a_minute_is_logged() -> None:
    telemetry, clock = InternalTelemetry(), [0.0]
    sink = GuardedSink("lines", Broken(), telemetry, lambda: clock[0])
    assert telemetry.sink_failures.items() == [(("lines",), 0)]
    with capture_logs() as logs:
        for _ in range(3):
            sink.withdraw(KEY)
        clock[0] = LOG_INTERVAL_S
        sink.withdraw(KEY)
        sink.close()
    assert telemetry.sink_failures.get("lines") == 5
    assert [(line["event"], line["sink"], line["calls"]) for line in logs] == [
        ("sink failed", "lines", 1),
        ("sink failed", "lines", 3),
    ]


def test_a_call_that_does_not_return_is_told_until_it_does() -> None:
    blocked, clock = Blocked(), [0.0]
    sink = GuardedSink("lines", blocked, InternalTelemetry(), lambda: clock[0])
    thread = threading.Thread(target=sink.withdraw, args=(KEY,))
    assert sink.stuck() is None
    thread.start()
    assert blocked.called.wait()
    assert sink.stuck() is None
    clock[0] = STUCK_S + 7
    assert sink.stuck() == "the sink 'lines' has not returned for 12 s"
    blocked.returns.set()
    thread.join()
    assert sink.stuck() is None


@pytest.mark.slow
def test_a_running_collector_tells_which_sink_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "packages"
    install(packages, "sinks", waiting="acme_waiting:WAITING")
    (packages / "acme_waiting.py").write_text(WAITING)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    exporters = {**FREE_PORTS["exporters"], "waiting": {"seconds": 3600}}
    store = {"max_backlog_age": "1s"}
    with Collector(tmp_path, assembly=QUICK, exporters=exporters, store=store) as running:
        running.post("/v1/traces", otlp(turn(script("", "lookup"))))
        [line] = until(lambda: running.events("nothing is published"))
        assert line["reasons"][0].startswith("the sink 'waiting' has not returned for ")
        assert running.get("/readyz") == (200, "ready\n")
        running.post("/v1/traces", otlp(turn(script("", "lookup"))))
        assert until(lambda: running.get("/readyz")[0] == 503)
        assert "the sink 'waiting' has not returned for " in running.get("/readyz")[1]
        assert running.stop() == 0
