"""Captures of real frameworks yield the same invocations after they were stored in Jaeger or
Tempo.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.cli.output.json_output import invocation_object
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.invocations import DEFAULT_KEYS
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.offline.replay import replay
from support.exports import grafana_json, jaeger_json, tempo_json, tempo_v2_json
from support.repository import CAPTURES
from support.thinning import thinned

CASES = sorted(
    path.parent.relative_to(CAPTURES).as_posix() for path in CAPTURES.glob("*/*/traces.binpb.gz")
)[::3]
"""Two of three captures add nothing new."""

EXPORTS: dict[str, Callable[..., bytes]] = {
    "Jaeger": jaeger_json,
    "Tempo": tempo_json,
    "Tempo v2": tempo_v2_json,
    "Grafana": grafana_json,
}
TWO_MICROSECONDS = 2e-6


@pytest.mark.parametrize("case", thinned(CASES, keep=12))
@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_tells_the_invocations_of_the_capture(
    name: str, case: str, tmp_path: Path
) -> None:
    """Log records stay unchanged beside it, because neither backend stores them."""
    traces, logs = CAPTURES / case / "traces.binpb.gz", CAPTURES / case / "logs.binpb.gz"
    (tmp_path / "export").write_bytes(
        EXPORTS[name](*messages(gzip.decompress(traces.read_bytes())))
    )
    if logs.exists():
        shutil.copy(logs, tmp_path)
    exported, notes = invocations(tmp_path)
    captured, notes_of_capture = invocations(CAPTURES / case)
    if name == "Jaeger":
        for one, other in zip(exported, captured, strict=True):
            assert one.pop("duration_s") == pytest.approx(
                other.pop("duration_s"), abs=TWO_MICROSECONDS
            )
    assert exported == captured != []
    assert notes == notes_of_capture


def messages(delimited: bytes) -> list[bytes]:
    found = []
    while delimited:
        size = int.from_bytes(delimited[:4])
        found.append(delimited[4 : 4 + size])
        delimited = delimited[4 + size :]
    return found


def invocations(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The invocations, and notes about telemetry that is not read."""
    [replayed] = replay([path], Evaluator(()), ReferenceSet(), DEFAULT_KEYS)
    found = [invocation_object(evaluation.invocation, "") for evaluation in replayed.evaluations]
    notes = [note for note in replayed.notes if "invocations.json" not in note]
    return found, [note.replace(str(path), "") for note in notes]
