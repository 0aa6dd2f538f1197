"""The store reaches its own limit: the rows of traces that were read longest ago are deleted, and
no open trace is lost.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pathgauge.collector.store.sqlite import files
from support.running import until

from . import patched
from .core import Core
from .sizes import times
from .traffic import Request, request_of, trace
from .truth import seen, setup, truth

pytestmark = pytest.mark.slow

MAX_BYTES = 5 << 20
SETTLE_S = 1.0
"""How long each request is needed; requests arrive faster than that."""
RESULTS_BYTES = 1 << 20
"""What a full store may still add: results, so that requests can be deleted."""
REQUESTS = times(300, 600)
PADDING = 40_000
"""Makes requests large in comparison with their results, which are kept. Each request holds a
complete trace, because late parts of a deleted one are dropped.
"""


def padded(request: Request, random: Random) -> Request:
    """The same spans, with a long name of the sender."""
    made = ExportTraceServiceRequest.FromString(request.body)
    made.resource_spans[0].resource.attributes.add(
        key="service.name"
    ).value.string_value = random.randbytes(PADDING // 2).hex()
    return Request(request.number, made.SerializeToString(), request.size)


def filled(folder: Path, seed: int) -> list[str]:
    """Every broken guarantee of a store that receives several times its size."""
    scoring, random = setup(folder), Random(seed)
    core = Core(folder / "store", scoring, commit=SETTLE_S, max_bytes=MAX_BYTES)
    core.start()
    requests = [
        padded(request_of(number, trace(f"trace-{number}", random)), random)
        for number in range(REQUESTS)
    ]
    breaches, most = [], 0
    try:
        for request in requests:
            core.take([request])
            most = max(most, core.used)
        assert until(core.reads_nothing)
    except AssertionError:
        breaches.append("requests are refused for good")
    core.stop()
    if most > MAX_BYTES + RESULTS_BYTES:
        breaches.append(f"the store took {most:,} bytes of {MAX_BYTES:,}")
    right = truth((span for request in requests for span in request.spans()), scoring)
    if seen(folder / "store").said != right.said:
        breaches.append("results are missing or wrong")
    return breaches


@pytest.fixture(autouse=True)
def short_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The write-ahead log counts as well; by default it can be larger than this store."""
    monkeypatch.setattr(files, "WAL_PAGES", 50)


def test_a_store_that_is_full_of_what_was_read_takes_more(tmp_path: Path, seed: int) -> None:
    assert filled(tmp_path, seed) == []


@pytest.mark.long
@pytest.mark.parametrize("mistake", ["keep_every_row", "forget_the_bound"])
def test_a_full_store_brings_to_light(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    patched.PATCHES[mistake](monkeypatch.setattr)
    assert filled(tmp_path, seed) != []
