"""Every capture of a directory, however it arrives: `make check-corpus CORPUS=<directory>`; by
default those of the repository.

A capture is a directory with trace and log files, or one file of traces; which invocations it
should be read into is not asked here.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.offline.trace_files import read_path
from support.arrival import final_invocations
from support.repository import CAPTURES

CORPUS = Path(os.environ.get("PATHGAUGE_CORPUS") or CAPTURES)
STEP = 1 if "PATHGAUGE_CORPUS" in os.environ else 7
"""The repository's own captures are arranged at random by another test already."""


def captures() -> list[Path]:
    """Directories with traces, and files of traces that share one directory."""
    files = sorted(path for path in CORPUS.rglob("*traces*") if path.is_file())
    return [path.parent if path.name.startswith("traces.") else path for path in files][::STEP]


@pytest.mark.parametrize(
    "capture", captures(), ids=lambda path: path.relative_to(CORPUS).as_posix()
)
def test_a_capture_is_read_the_same_however_it_arrives(capture: Path) -> None:
    files = read_path(capture)
    spans, logs = files.spans, files.logs
    everything: list[Span | LogRecord] = [*spans, *logs]
    at_once = final_invocations(everything, len(everything), 0)
    shuffled = everything * 2
    Random(capture.name).shuffle(shuffled)
    assert final_invocations([*logs, *spans], len(everything), 0) == at_once, "log records first"
    assert final_invocations([*reversed(spans), *logs], 1, 0) == at_once, "one a request, backwards"
    assert final_invocations(shuffled, 1, 0) == at_once, "one a request, each twice, shuffled"
    assert final_invocations(shuffled, 5, 7.0) == at_once, (
        "shuffled, so slowly that traces are read in pieces"
    )
