"""Large reference files change while traffic arrives: requests are answered and scored meanwhile,
nothing is lost, and each change is applied.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

import pytest
import yaml

from support.running import Collector, until
from support.turns import otlp, script, turn

from .sizes import times

pytestmark = pytest.mark.slow

SCENARIOS = 20_000
ACTIVE = 100
"""Scenarios with traffic. With series of all, polling `/metrics` would be most of the work."""
RELOADS = times(1, 10)
PAUSE_S = 0.05
ANSWER_S = 5.0
RELOAD_S = 180.0
"""Much longer than a reload takes on an idle machine: 3 s from JSON, 4 s from YAML."""
SCORED = "pathgauge_invocations_scored_total"
FORMS: Mapping[str, Callable[[object], str]] = {
    "references.json": json.dumps,
    "references.yaml": lambda rows: yaml.dump(rows, Dumper=yaml.CSafeDumper),
}


class Sender:
    """Sends one invocation after the other, until it is stopped."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._lock = threading.Lock()
        self.sent = 0
        self.slowest = 0.0
        self.refused: list[tuple[int, str]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def send(self, tool: str) -> None:
        """Send one invocation that calls a tool."""
        with self._lock:
            scenario = f"s{self.sent % ACTIVE}"
            began = time.monotonic()
            answer = self._collector.post("/v1/traces", otlp(turn(script(scenario, tool))))
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.sent += 1
            if answer[0] != 200:
                self.refused.append(answer)

    def stop(self) -> None:
        """Wait for the last answer."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            self.send("another_tool")


def write(file: Path, tool: str) -> None:
    """Replace a reference file, as a deployment does."""
    rows = [
        {"scenario": f"s{n}", "input": f"Do {n}", "expected_tools": [{"name": tool, "args": {}}]}
        for n in range(SCENARIOS)
    ]
    new = file.with_suffix(".new")
    new.write_text(FORMS[file.name](rows))
    new.replace(file)


def passed(collector: Collector) -> float:
    return collector.value(
        "pathgauge_evaluations_total", metric="tool_trajectory_f1", outcome="pass"
    )


def reload(collector: Collector, sender: Sender, file: Path, number: int) -> None:
    """Replace the references. Invocations are scored before the new ones apply, and by them
    afterwards.
    """
    assert until(lambda: collector.value(SCORED) > 0)
    write(file, f"tool_{number}")
    before = collector.value(SCORED)
    assert until(lambda: len(collector.events("reloaded")) == number, RELOAD_S)
    assert collector.value(SCORED) > before
    probes = passed(collector) + 1
    sender.send(f"tool_{number}")
    assert until(lambda: passed(collector) == probes)


@pytest.mark.parametrize("name", FORMS)
def test_large_references_are_reloaded_while_invocations_are_scored(
    name: str, tmp_path: Path
) -> None:
    write(tmp_path / name, "tool_0")
    criteria = {"tool_trajectory_f1": 0.5}
    with Collector(tmp_path, references=[name], criteria=criteria) as collector:
        with Sender(collector) as sender:
            for number in range(1, RELOADS + 1):
                reload(collector, sender, tmp_path / name, number)
        assert sender.refused == []
        assert sender.slowest < ANSWER_S
        assert until(lambda: collector.value(SCORED) == sender.sent)
