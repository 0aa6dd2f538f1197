"""Small requests that would take minutes to read: a running service answers others meanwhile, also
when it was killed and reads them from the journal, and never reads them again.
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL
from typing import Self

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from pathgauge.collector.core.invocations.messages.literals import MAX_LITERAL_CHARACTERS
from pathgauge.collector.testing import span
from support.healthy import Healthy
from support.hostile_literals import written
from support.running import QUICK, Collector, until

pytestmark = pytest.mark.slow

VALUES = 40
MAX_READING_S = 2
"""Of CPU time. Reading the lists of numbers takes several times as long."""
PATIENCE_S = 120.0
MAX_REQUEST_BYTES = 64 * 1024
MAX_ANSWER_S = 1.0
PAUSE_S = 0.05
ASSEMBLY = {**QUICK, "max_reading_cpu": f"{MAX_READING_S}s"}

SLOW_FOR_PYTHON, TOO_SLOW = "fields of an f-string", "'1,'"


def request(trace: str, construct: str) -> bytes:
    """An agent with many tool calls, each with the longest arguments."""
    text = written(construct, "a list", MAX_LITERAL_CHARACTERS)
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": trace}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "t",
        "gen_ai.tool.call.arguments": text,
    }
    tools = [
        span(f"{trace}{n}", "execute_tool t", tool, trace=trace, parent=trace)
        for n in range(VALUES)
    ]
    spans = [span(trace, f"invoke_agent {trace}", agent, trace=trace), *tools]
    scope = ScopeSpans(spans=[one.proto for one in spans])
    whole = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[scope])])
    body = gzip.compress(whole.SerializeToString())
    assert len(body) < MAX_REQUEST_BYTES
    return body


class Waits:
    """How long something takes, again and again. `longest_s` leaves out how long the machine lets
    this process wait.
    """

    def __init__(self, ask: Callable[[], object]) -> None:
        self._ask = ask
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._measure),
            threading.Thread(target=self._idle),
        ]
        self._longest_s = self._machine_s = 0.0
        self.answers = 0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def longest_s(self) -> float:
        return self._longest_s - self._machine_s

    def _measure(self) -> None:
        while not self._stop.wait(PAUSE_S):
            began = time.monotonic()
            self._ask()
            self._longest_s = max(self._longest_s, time.monotonic() - began)
            self.answers += 1

    def _idle(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            time.sleep(PAUSE_S)
            self._machine_s = max(self._machine_s, time.monotonic() - began - PAUSE_S)


def health(collector: Collector) -> None:
    assert collector.get("/healthz")[0] == 200


def skipped(collector: Collector) -> float:
    return collector.value("pathgauge_traces_skipped_total", reason="too_slow")


def read(collector: Collector, agent: str) -> float:
    return collector.value("pathgauge_invocations_total", agent=agent)


@pytest.mark.parametrize("redacted", [False, True], ids=["as sent", "redacted"])
def test_others_are_answered_while_values_are_read_that_take_long(
    tmp_path: Path, redacted: bool
) -> None:
    redaction = {"attributes": [{"match": "*.password", "action": "drop"}]} if redacted else None
    options = {"redaction": redaction} if redaction else {}
    with Collector(tmp_path, store={}, assembly=ASSEMBLY, **options) as collector:
        with Waits(lambda: health(collector)) as waits, Healthy(collector.ports) as healthy:
            for trace, construct in (("python", SLOW_FOR_PYTHON), ("slow", TOO_SLOW)):
                body = request(trace, construct)
                assert collector.post("/v1/traces", body, Content_Encoding="gzip")[0] == 200
            assert until(
                lambda: skipped(collector) == 1 and read(collector, "python") == 1, PATIENCE_S
            )
        assert (waits.longest_s < MAX_ANSWER_S, healthy.failures) == (True, []), waits.longest_s
        assert waits.answers > 0
        sent = healthy.sent.total()
        assert until(lambda: read(collector, "healthy") == sent, PATIENCE_S)


def test_after_a_kill_they_are_read_from_the_journal_once(tmp_path: Path) -> None:
    patient = {**ASSEMBLY, "settle": "2s", "idle": "4s"}
    collector = Collector(tmp_path, store={}, assembly=patient)
    for trace, construct in (("python", SLOW_FOR_PYTHON), ("slow", TOO_SLOW)):
        body = request(trace, construct)
        assert collector.post("/v1/traces", body, Content_Encoding="gzip")[0] == 200
    collector.stop(SIGKILL)
    with Collector(tmp_path, store={}, assembly=ASSEMBLY) as again:
        with Waits(lambda: health(again)) as waits:
            assert until(lambda: skipped(again) == 1 and read(again, "python") == 1, PATIENCE_S)
        assert waits.longest_s < MAX_ANSWER_S
        again.stop(SIGKILL)
    with Collector(tmp_path, store={}, assembly=ASSEMBLY) as third, Healthy(third.ports) as healthy:
        assert until(lambda: read(third, "healthy") > 10)
        healthy.stop()
        sent = healthy.sent.total()
        assert until(lambda: read(third, "healthy") == sent, PATIENCE_S)
        assert (skipped(third), read(third, "python")) == (1, 1)
        completed = third.series("pathgauge_traces_completed_total", "reason")
        assert sum(completed.values()) == 2 + sent
