"""A crash in native code leaves the stacks of all threads in the log."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support.running import Collector, until

pytestmark = pytest.mark.slow


def crashed(log: Path) -> bool:
    """Whether the stacks are written, down to the module that runs the process."""
    text = log.read_text()
    began = text.find("Fatal Python error: Segmentation fault")
    return began >= 0 and "/asyncio/runners.py" in text[began:]


def test_a_crash_of_the_collector_leaves_its_stacks(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        collector.signal(signal.SIGSEGV)
        assert until(lambda: crashed(tmp_path / "log.jsonl"))
        assert until(lambda: collector.process.poll() == -signal.SIGSEGV)


def test_a_crash_of_a_scorer_leaves_its_stacks_and_another_one_is_started(tmp_path: Path) -> None:
    with Collector(tmp_path, workers=2, store={"path": "data"}) as collector:
        pid = collector.process.pid
        [scorer, _] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(scorer), signal.SIGSEGV)
        assert until(lambda: crashed(tmp_path / "log.jsonl"))
        assert until(lambda: "scorer ended" in (tmp_path / "log.jsonl").read_text())
