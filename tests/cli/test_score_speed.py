"""The gate costs no more than the pipeline: reading and scoring traces is most of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from time import thread_time

import pytest
import yaml
from rich.console import Console

from pathgauge.collector.cli.output.details import failures_first, print_details
from pathgauge.collector.cli.output.gate_json import result_lines
from pathgauge.collector.cli.output.json_output import json_line
from pathgauge.collector.cli.output.junit import to_junit
from pathgauge.collector.cli.output.report import print_gate, print_reasons
from pathgauge.collector.config.active import for_gate, resolve
from pathgauge.collector.offline.gate import judge
from pathgauge.collector.offline.replay import replay
from support.turns import otlp, script, turn

TRACES = 200


@contextmanager
def measured(times: dict[str, float], name: str) -> Iterator[None]:
    began = thread_time()
    yield
    times[name] = thread_time() - began


@pytest.mark.slow
def test_every_output_costs_less_than_reading_and_scoring(tmp_path: Path) -> None:
    """Every invocation fails in a scenario of its own, so that there is most to print."""
    turns = [turn(script(str(number), *"abcde", answer="No.")) for number in range(TRACES)]
    (tmp_path / "traces.bin").write_bytes(otlp(*turns))
    references = [
        {"scenario": str(number), "expected_tools": [*"abxde"], "expected_response": "Yes."}
        for number in range(TRACES)
    ]
    (tmp_path / "references.yaml").write_text(yaml.safe_dump(references))
    settings = for_gate(None, [str(tmp_path / "references.yaml")])
    active, keys = resolve(settings), settings.scenario.keys
    out, times = Console(file=StringIO(), force_terminal=False), dict[str, float]()
    with measured(times, "pipeline"):
        replayed = list(
            replay([tmp_path / "traces.bin"], active.evaluator, active.references, keys)
        )
    with measured(times, "gate"):
        gate = judge(replayed, active.evaluator, active.references)
    assert (len(gate.failures), len(gate.lines)) == (2 * TRACES, 2 * TRACES)
    outputs: dict[str, Callable[[], object]] = {
        "table": lambda: print_gate(gate, out),
        "reasons": lambda: print_reasons(gate, out),
        "details": lambda: print_details(failures_first(replayed, gate), out),
        "json": lambda: [*map(json_line, result_lines(replayed, gate, failed_only=False))],
        "junit": lambda: to_junit(gate),
    }
    for name, output in outputs.items():
        with measured(times, name):
            output()
    slow = {name: time for name, time in times.items() if time > times["pipeline"]}
    assert slow == {}, times
