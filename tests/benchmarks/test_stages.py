"""Where the CPU time of a span goes, stage by stage, in the running service."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.servers import HERE, LONG, SECONDS, measure_bare, measure_receiver, measure_service

pytestmark = pytest.mark.slow

LOADS = ("mixed", "agents") if LONG else ("mixed",)
LOAD_S = SECONDS / 3 if LONG else SECONDS
RECEIVING = ("receive", "journal", "gRPC", "commit of requests")
"""How the names of the stages begin that a span passes until it is handed to the pipeline."""
MAX_RECEIVING_US = 15.0
"""CPU of a receiver and its journal, when nothing competes for the interpreter and the caches."""
ENDED_WITHIN_S = 30


def test_what_a_span_costs_by_stage(tmp_path: Path) -> None:
    costs = {mix: _costs(tmp_path, mix) for mix in LOADS}
    bare = {mix: measure_bare(mix, LOAD_S).cpu_us_per_span for mix in LOADS}
    alone = {mix: measure_receiver(tmp_path, mix, LOAD_S).cpu_us_per_span for mix in LOADS}
    print(f"\n{'CPU us/span by stage':36}" + "".join(f"{mix:>10}" for mix in LOADS))
    for stage in sorted({stage for cost in costs.values() for stage in cost}):
        print(f"{stage:36}" + "".join(f"{costs[mix].get(stage, 0):10.1f}" for mix in LOADS))
    for name, values in {
        "all": {mix: sum(costs[mix].values()) for mix in LOADS},
        "of it receive, journal, hand-over": {mix: _receiving(costs[mix]) for mix in LOADS},
        "a receiver with its journal, alone": alone,
        "a bare receiver": bare,
    }.items():
        print(f"{name:36}" + "".join(f"{values[mix]:10.1f}" for mix in LOADS))
    most, goal = max(alone.values()), f"at most {MAX_RECEIVING_US:g}"
    print(f"goal: a receiver alone {most:.1f}, {goal}: {_word(most <= MAX_RECEIVING_US)}")
    assert all(min(cost.values()) > -0.5 for cost in costs.values()), "a timer counts twice"


def _costs(folder: Path, mix: str) -> Mapping[str, float]:
    cpu_s: dict[str, float] = {}

    def report(server: subprocess.Popen[str]) -> None:
        server.send_signal(signal.SIGTERM)
        printed, problem = server.communicate(timeout=ENDED_WITHIN_S)
        assert printed, problem
        cpu_s.update(json.loads(printed))

    run = measure_service(
        folder, mix, seconds=LOAD_S, program=HERE / "staged_service.py", at_end=report
    )
    return {stage: used * 1e6 / run.load["spans"] for stage, used in cpu_s.items()}


def _receiving(costs: Mapping[str, float]) -> float:
    return sum(cost for stage, cost in costs.items() if stage.startswith(RECEIVING))


def _word(met: bool) -> str:
    return "met" if met else "not met"
