"""Without its dialect, the telemetry of a framework is read as far as it is certain: much of it is
right, hardly anything wrong, and what is incomplete has a flag.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.cli.output.json_output import invocation_object
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.invocations import DEFAULT_KEYS
from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.offline.replay import replay_files
from pathgauge.collector.offline.trace_files import read_path
from support.dialects import INSTALLED
from support.left_out import Judged, judged
from support.repository import CAPTURES

pytestmark = pytest.mark.slow

MIN_RIGHT = 0.87
"""The share of the fields that are right, as a mean over the dialects; measured: 0.883."""
MAX_WRONG = 0.01
"""The share of the fields of all dialects; measured: 0.0096. What is wrong follows the conventions
in its form, such as a framework's name of a tool, or a result that a framework wraps.
"""

TURNS_IN_ONE_TRACE = {"livekit": 0.65, "pipecat": 0.5}
"""Frameworks whose traces have all turns of a session, and the share of their fields that is right;
measured: 0.67 and 0.53. Without their dialect, a session is one invocation. The calls of Pipecat
are only in prompts.
"""

TWO_INSTRUMENTATIONS = {
    *(f"vercel-ai-6-openinference-2.8/{name}" for name in ("fail", "retry", "sub", "turns")),
    *(f"agentscope-runtime-1.1-runner/{name}" for name in ("model-fails", "turns")),
    *(f"voltagent-2.10-native/{name}" for name in ("ai-sdk-fail", "ai-sdk-sub")),
}
"""Captures of spans that no dialect has to guess at: without the first one, another one knows them,
as it knows those that its own instrumentation writes alone.
"""

RUNS_TOGETHER = {
    "fast-agent-0.10-native/turns",
    *(
        f"quarkus-langchain4j-1.10-native/{name}"
        for name in ("stream-after-agent", "streams-at-once", "streams-in-turn")
    ),
}
"""Captures of several runs below one request or program that only the spans of their agents divide,
which are known by their names alone. Without the dialect they are one invocation, with a flag.
"""

Read = tuple[Mapping[str, Any], list[Judged]]


def captures() -> dict[str, list[Path]]:
    """The captures that each dialect reads, except the conventions."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(CAPTURES.glob("*/*/invocations.json")):
        if str(path.parent.relative_to(CAPTURES)) in TWO_INSTRUMENTATIONS:
            continue
        for dialect in {one["dialect"] for one in json.loads(path.read_text())} - {"genai"}:
            found[dialect].append(path.parent)
    return found


@cache
def read_without(dialect: str, *, together: bool = True) -> tuple[Read, ...]:
    """`together`: whether captures of runs that only the dialect can divide are among them."""
    others = Registry(one for one in INSTALLED.dialects if one.name != dialect)
    return tuple(
        one
        for path in captures()[dialect]
        if together or str(path.relative_to(CAPTURES)) not in RUNS_TOGETHER
        for one in _read(path, others)
    )


def _read(path: Path, registry: Registry) -> Iterator[Read]:
    expected = json.loads((path / "invocations.json").read_text())
    replayed = replay_files(
        read_path(path), path, Evaluator(()), ReferenceSet(), DEFAULT_KEYS, registry=registry
    )
    read = [invocation_object(one.invocation, "") for one in replayed.evaluations]
    return judged(expected, read)


def verdicts(dialect: str) -> Counter[str]:
    return Counter(
        verdict for _, fields in read_without(dialect, together=False) for _, verdict in fields
    )


def test_without_its_dialect_most_of_a_framework_is_still_read() -> None:
    counts = {dialect: verdicts(dialect) for dialect in captures()}
    right = {name: count["right"] / count.total() for name, count in counts.items()}
    of_sessions = {name: right.pop(name) for name in TURNS_IN_ONE_TRACE}
    assert sum(right.values()) / len(right) >= MIN_RIGHT, right
    assert all(share >= TURNS_IN_ONE_TRACE[name] for name, share in of_sessions.items())


def test_without_its_dialect_hardly_anything_is_read_wrong() -> None:
    counts = sum((verdicts(dialect) for dialect in captures()), Counter())
    assert counts["wrong"] / counts.total() <= MAX_WRONG, counts


def test_what_is_missing_or_wrong_has_a_flag() -> None:
    without_flag = [
        (dialect, read["trace_id"], fields)
        for dialect in captures()
        for read, fields in read_without(dialect)
        if read and not read["flags"] and any(verdict != "right" for _, verdict in fields)
    ]
    assert without_flag == []
