"""What ends a thread that the service needs is visible: third-party code cannot end one by
`SystemExit`, and when one ends all the same, so does the process, with a status and a reason.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support.packages import install
from support.running import FREE_PORTS, PATIENCE_S, Collector, until
from support.turns import otlp, script, turn

pytestmark = pytest.mark.slow

CODE = '''
import ctypes
import os
import sys
import threading
from dataclasses import dataclass
from typing import ClassVar

from pathgauge import Score, SinkType


@dataclass(frozen=True)
class Scorer:
    name: ClassVar[str] = "third_party"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False


class Panic(BaseException):
    """Such as the panic of an extension in Rust."""


class Exits(Scorer):
    def score(self, actual, expected):
        sys.exit(0)


class Panics(Scorer):
    def score(self, actual, expected):
        raise Panic("at line 7")


class Ends(Scorer):
    """Ends a thread that is named like the agent, when nothing of a plug-in runs in it."""

    def score(self, actual, expected):
        threading.Timer(0.3, end, [actual.agent]).start()
        return Score(1.0)


def end(name):
    [thread] = [thread for thread in threading.enumerate() if thread.name == name]
    number, error = ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, error)


class Forks(Scorer):
    """The child ends as a program does, which a thread of a service cannot."""

    def score(self, actual, expected):
        child = os.fork()
        if child == 0:
            sys.exit(0)
        os.waitpid(child, 0)
        return Score(1.0)


class Waits(Scorer):
    def score(self, actual, expected):
        threading.Event().wait()


class Sink:
    def publish(self, evaluation, now):
        sys.exit(0)

    def publish_judged(self, judged, now): ...
    def publish_conversation(self, result, now): ...
    def withdraw(self, key): ...
    def close(self): ...


@dataclass(frozen=True)
class Options:
    pass


EXITING = SinkType(Options, lambda options, context: Sink())
'''


@pytest.fixture(autouse=True)
def _third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "packages"
    install(packages, "sinks", exiting="acme_ends:EXITING")
    (packages / "acme_ends.py").write_text(CODE)
    monkeypatch.setenv("PYTHONPATH", str(packages))


def test_a_scorer_and_a_sink_that_exit_fail_alone(tmp_path: Path) -> None:
    criteria = {name.lower(): {"scorer": f"acme_ends:{name}"} for name in ("Exits", "Panics")}
    exporters = {**FREE_PORTS["exporters"], "exiting": {}}
    settings: dict[str, Any] = {"criteria": {**criteria, "failure": None}, "exporters": exporters}
    with Collector(tmp_path, **settings) as running:
        for _ in range(2):
            assert running.post("/v1/traces", otlp(turn(script("", "lookup"))))[0] == 200
        until(lambda: running.value("pathgauge_sink_failures_total", sink="exiting") == 2)
        counted = running.series("pathgauge_evaluations_total", "metric", "outcome")
        assert {key: count for key, count in counted.items() if count} == {
            ("exits", "error"): 2,
            ("panics", "error"): 2,
            ("failure", "informational"): 2,
        }
        assert running.value("pathgauge_sink_failures_total", sink="exiting") == 2
        assert running.get("/healthz") == (200, "ok\n")
        assert running.stop() == 0


def test_the_child_of_a_scorer_does_not_go_on_as_a_second_collector(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "criteria": {"forks": {"scorer": "acme_ends:Forks"}},
        "store": {"path": "data"},
    }
    with Collector(tmp_path, **settings) as running:
        for _ in range(2):
            assert running.post("/v1/traces", otlp(turn(script("", "lookup"))))[0] == 200
        assert until(lambda: running.value("pathgauge_evaluations_total") == 2)
        children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
        assert not children.exists() or children.read_text() == ""
        assert running.stop() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_scorer_that_does_not_return_is_told_by_its_place(tmp_path: Path, workers: int) -> None:
    settings: dict[str, Any] = {
        "criteria": {"waits": {"scorer": "acme_ends:Waits"}},
        "store": {"path": "data"},
        "workers": workers,
    }
    with Collector(tmp_path, **settings) as running:
        running.post("/v1/traces", otlp(turn(script("", "lookup"))))
        [line] = until(lambda: running.events("nothing is published"))
        [reason] = line["reasons"]
        assert "the pipeline has not returned for 1" in reason
        assert re.search(r" from \S+/acme_ends\.py:\d+ \(Waits\.score\)$", reason)


@pytest.mark.parametrize("thread", ["pipeline", "store"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_thread_that_ends_ends_its_process(tmp_path: Path, thread: str, workers: int) -> None:
    settings: dict[str, Any] = {
        "criteria": {"ends": {"scorer": "acme_ends:Ends"}},
        "store": {"path": "data"},
        "workers": workers,
    }
    with Collector(tmp_path, **settings) as running:
        running.post("/v1/traces", otlp(turn(script("", "lookup"), thread)))
        reason = f"the thread {thread!r} has ended by SystemExit"
        [line] = until(lambda: running.events("a part that the service needs has ended"))
        assert line["reason"] == reason
        if workers == 1:
            if thread == "store":  # nothing more can be stored, which takes until the time limit
                assert running.get("/healthz") == (503, f"{reason}\n")
            assert running.process.wait(PATIENCE_S) == 1
        else:
            [line] = until(lambda: running.events("scorer ended; it is started again"))
            assert (line["status"], line.get("signal")) == (1, None)
            assert until(lambda: running.get("/readyz") == (200, "ready\n"))
            assert running.stop() == 0
