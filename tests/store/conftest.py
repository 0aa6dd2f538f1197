"""State of several scorers, which tests move, damage or remove."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.scorers import SOME_STATE, Scorers, run


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Scorers]:
    """A collector with some state, which was stopped."""
    running = Scorers(tmp_path / "data")
    running.start(2)
    run(running, SOME_STATE)
    running.stop()
    yield running
    running.stop()
