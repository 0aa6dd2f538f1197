"""What counts as worse than the last release."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.recorded import is_recorded, record, worse
from benchmarks.rounds import BARE, Key, Ratios, Rounds
from benchmarks.servers import Run

ROW = Key("mixed", "pathgauge, durable")
RELEASED = Ratios(acked=0.4, scored=0.2, cpu=10.0)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (RELEASED, []),
        (RELEASED._replace(acked=0.36, scored=0.18, cpu=11.0), []),
        (RELEASED._replace(acked=0.8, scored=0.4, cpu=5.0), []),
        (RELEASED._replace(acked=0.34), ["mixed, pathgauge, durable: acked 0.34, was 0.40"]),
        (RELEASED._replace(scored=0.17), ["mixed, pathgauge, durable: scored 0.17, was 0.20"]),
        (RELEASED._replace(cpu=11.6), ["mixed, pathgauge, durable: cpu 11.60, was 10.00"]),
    ],
)
def test_a_ratio_that_is_15_percent_worse_is_found(
    tmp_path: Path, now: Ratios, expected: list[str]
) -> None:
    file = tmp_path / "ratios.json"
    record({ROW: RELEASED}, file)
    assert worse({ROW: [now]}, file) == expected


def test_the_median_decides_unless_one_round_was_as_good_as_before(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    record({ROW: RELEASED}, file)

    def found(*cpu: float) -> list[str]:
        return worse({ROW: [RELEASED._replace(cpu=value) for value in cpu]}, file)

    assert found(11.0, 11.0, 30.0) == []
    assert found(9.9, 12.0, 12.0) == []
    assert found(10.5, 12.0, 30.0) == ["mixed, pathgauge, durable: cpu 12.00, was 10.00"]


def test_rows_and_machines_that_were_not_recorded_are_not_compared(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    assert not is_recorded(file)
    record({ROW: RELEASED}, file)
    assert is_recorded(file)
    assert worse({ROW._replace(load="agents"): [RELEASED._replace(cpu=99.0)]}, file) == []
    other_machine = {f"{os.cpu_count()}0 cores": next(iter(json.loads(file.read_text()).values()))}
    file.write_text(json.dumps(other_machine))
    assert not is_recorded(file)
    assert worse({ROW: [RELEASED._replace(cpu=99.0)]}, file) == []


def test_a_record_replaces_that_of_the_same_number_of_cores(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    record({ROW: RELEASED}, file)
    record({ROW: RELEASED._replace(cpu=5.0)}, file)
    assert worse({ROW: [RELEASED]}, file) == ["mixed, pathgauge, durable: cpu 10.00, was 5.00"]


def test_ratios_are_taken_within_a_round_and_their_median_is_used() -> None:
    """The machine is half as fast in the second round, so no ratio changes."""
    slow, rounds = iter((1.0, 2.0, 1.0)), Rounds({})
    for factor in slow:
        rounds.runs.append({Key("mixed", BARE): _run(1.0 * factor), ROW: _run(4.0 * factor)})
    assert rounds.ratios(ROW) == [Ratios(0.25, 0.25, 4.0)] * 3
    rounds.runs.append({Key("mixed", BARE): _run(1.0), ROW: _run(8.0)})
    rounds.runs.append({Key("mixed", BARE): _run(1.0), ROW: _run(8.0)})
    assert rounds.medians(ROW) == Ratios(0.25, 0.25, 4.0)


def _run(seconds: float) -> Run:
    return Run({"spans": 100.0, "seconds": seconds}, seconds, seconds, 1.0)
