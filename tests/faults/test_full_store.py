"""The store has reached its own bound: what was read longest ago is given back, and nothing that waits is lost."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.store import files
from running import until

from .core import Core
from .sizes import times
from .traffic import Request, request_of, trace
from .truth import seen, setup, truth

MAX_BYTES = 5 << 20
REQUESTS = times(200, 600)
PADDING = 40_000
"""Makes requests large beside their results, which are kept. Each has a whole trace: late parts of one that was given back are dropped."""


def padded(request: Request, random: Random) -> Request:
    """The same spans, of a sender with a long name."""
    made = ExportTraceServiceRequest.FromString(request.body)
    made.resource_spans[0].resource.attributes.add(key="service.name").value.string_value = random.randbytes(PADDING // 2).hex()
    return Request(request.number, made.SerializeToString(), request.size)


def test_a_store_that_is_full_of_what_was_read_takes_more(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_WRITE_AHEAD_PAGES", 50)
    scoring, random = setup(tmp_path), Random(seed)
    core = Core(tmp_path / "store", scoring, settle=0.02, max_bytes=MAX_BYTES)
    core.start()
    requests = [padded(request_of(number, trace(f"trace-{number}", random)), random) for number in range(REQUESTS)]
    core.take(requests)
    assert until(core.reads_nothing)
    used = core.used
    core.stop()
    right = truth((span for request in requests for span in request.spans()), scoring)
    assert seen(tmp_path / "store").said == right.said
    assert used <= MAX_BYTES
