"""The time to load references is proportional to the size of their files."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from pathgauge.collector.config import Config, active
from pathgauge.collector.core.documents import ConfigError
from support.large_references import KINDS, Kind
from support.pace import Pace

pytestmark = pytest.mark.slow

TRIES = 5
GROWTH = 5
MAX_RATIO = 12.0
"""Time that is proportional to the size gives `GROWTH`, to its square 25."""
UNDER_JSON_S, UNDER_YAML_S = 1.25, 3.75


def seconds(file: Path) -> float:
    """Processor time to load a file, or to find its mistakes."""
    config = Config(references=(str(file),), criteria={"tool_trajectory_f1": 0.5})
    began = time.thread_time()
    with suppress(ConfigError):
        active.resolve(config)
    return time.thread_time() - began


def growth(kind: Kind, n: int, folder: Path) -> float:
    """How many times longer a file takes that is `GROWTH` times larger; the best of some tries,
    because the machine is shared.
    """
    small, large = folder / f"small{kind.suffix}", folder / f"large{kind.suffix}"
    small.write_text(kind.text(n), encoding="utf-8")
    large.write_text(kind.text(GROWTH * n), encoding="utf-8")
    least_small = least_large = float("inf")
    for _ in range(TRIES):
        least_small, least_large = (
            min(least_small, seconds(small)),
            min(least_large, seconds(large)),
        )
        if least_large < MAX_RATIO * least_small:
            break
    return least_large / least_small


@pytest.mark.long_table
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_time_is_proportional_to_the_size(kind: Kind, tmp_path: Path) -> None:
    assert growth(kind, 100, tmp_path) < MAX_RATIO


@pytest.mark.long_table
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_time_is_proportional_to_the_size_of_large_files(kind: Kind, tmp_path: Path) -> None:
    assert growth(kind, 500, tmp_path) < MAX_RATIO


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("native, one line", UNDER_JSON_S),
        ("native, indented", UNDER_JSON_S),
        ("native, JSON lines", UNDER_JSON_S),
        ("native, own criteria", 2 * UNDER_JSON_S),
        ("native, YAML", UNDER_YAML_S),
        ("native, YAML in one line", UNDER_YAML_S),
        ("native, YAML documents", UNDER_YAML_S),
    ],
)
def test_5_000_scenarios_are_loaded_in_seconds(name: str, limit: float, tmp_path: Path) -> None:
    file = tmp_path / f"references{KINDS[name].suffix}"
    file.write_text(KINDS[name].text(5_000), encoding="utf-8")
    config = Config(references=(str(file),), criteria={"tool_trajectory_f1": 0.5})
    pace = Pace()
    pace.measure()
    began = time.thread_time()
    assert len(active.resolve(config).references) == 5_000
    took = time.thread_time() - began
    pace.measure()
    assert took < limit * pace.slower


def test_2_000_scenarios_in_one_line_are_loaded_in_two_seconds(tmp_path: Path) -> None:
    file = tmp_path / "references.json"
    file.write_text(KINDS["native, one line"].text(2_000), encoding="utf-8")
    pace = Pace()
    pace.measure()
    assert seconds(file) < 2.0 * pace.slower
