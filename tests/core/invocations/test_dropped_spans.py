"""Of each capture, every span is dropped with a probability of one half, as a full queue of an SDK
does it: few of the trajectories that are scored nevertheless lack a call. The agents were seen
before, as those of a service are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest

from pathgauge.collector.core.invocations.reader import readings
from pathgauge.collector.core.invocations.reading import Reading
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.offline.trace_files import TraceFiles, read_path
from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.types import Invocation
from support.arrival import final_invocations
from support.dialects import INSTALLED
from support.repository import CAPTURES

CASES = sorted(
    path.parent.relative_to(CAPTURES).as_posix() for path in CAPTURES.glob("*/*/invocations.json")
)


def tools_known(found: Invocation) -> bool:
    return tools_unknown(found) is None and "missing_root" not in found.flags


def pairs(case: str, share: float) -> Iterator[tuple[Invocation, Mapping[str, Any]]]:
    """Each invocation that is read with this share of the spans, and the complete one. A part of an
    invocation is compared with the one in the trace that has most calls.
    """
    files, random = read_path(CAPTURES / case), Random(f"{case} 0")
    complete = json.loads((CAPTURES / case / "invocations.json").read_text())
    kept = [one for one in files.spans if random.random() < share]
    items: list[Span | LogRecord] = [*kept, *files.logs]
    for found in final_invocations(items, len(items) or 1, 0, _readings(files)):
        of_trace = [one for one in complete if one["trace_id"] == found.trace_id]
        same = [one for one in of_trace if one["span_id"] == found.span_id]
        largest = sorted(of_trace, key=lambda one: -len(one["tool_calls"]))
        yield found, (same or largest)[0]


def _readings(files: TraceFiles) -> list[Reading]:
    """Every invocation, read with all spans."""
    return [
        reading
        for trace_id in {span.trace_id for span in files.spans}
        for reading in readings(
            Trace(
                "",
                trace_id,
                tuple(span for span in files.spans if span.trace_id == trace_id),
                tuple(log for log in files.logs if log.trace_id == trace_id),
            ),
            INSTALLED,
        )
    ]


def names(calls: Any) -> Counter[str]:
    return Counter(call["name"] if isinstance(call, dict) else call.name for call in calls)


@pytest.mark.slow
def test_few_scored_trajectories_lack_calls_when_half_of_the_spans_are_lost() -> None:
    """Without model calls, as in captures of MCP clients alone, nothing else tells what was called.
    The last prompt of a turn of Pipecat tells all calls, whatever else is lost. A run without calls
    can lack none.
    """
    read = [
        (found, complete)
        for case in CASES
        for found, complete in pairs(case, 0.5)
        if complete["model"] is not None and complete["dialect"] != "pipecat"
    ]
    with_calls = [(found, complete) for found, complete in read if complete["tool_calls"]]
    scored = [(found, complete) for found, complete in with_calls if tools_known(found)]
    lacking = [
        found
        for found, complete in scored
        if names(complete["tool_calls"]) - names(found.tool_calls)
    ]
    assert len(scored) <= 0.11 * len(with_calls)
    assert len(lacking) <= 0.04 * len(read)


def test_no_complete_capture_has_lost_anything() -> None:
    """`lost-root` is a capture of a trace without its root. Two instrumentations for JavaScript do
    not export the spans of runs and tools that fail. OpenLLMetry leaves the tool calls of Ollama
    out, OpenInference the streams of Groq.
    """
    flagged = {
        path.parent.relative_to(CAPTURES).as_posix()
        for path in CAPTURES.glob("*/*/invocations.json")
        for one in json.loads(path.read_text())
        if any(flag.startswith("lost_") or flag == "missing_root" for flag in one["flags"])
    }
    assert flagged == {
        "llama-index-openllmetry-0.62/S7",
        "llama-index-openllmetry-0.62/S7-openai",
        "groq-openinference/S9",
        "mlflow-3.17-by-hand/lost-root",
        "openai-agents-js-openinference/S7",
        "openai-js-openllmetry/S3",
        "openai-js-openllmetry/S7",
        "ollama-openllmetry/S1",
        "ollama-openllmetry/S5",
    }
