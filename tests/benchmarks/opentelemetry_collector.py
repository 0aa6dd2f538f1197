"""Measures the OpenTelemetry Collector under the same load, if `otelcol` is on the PATH.

docs/benchmarks.md explains how to build one that has the necessary parts. Tail sampling is the part
of it that comes closest to pathgauge: it collects the spans of a trace, waits, and decides. A trace
counts as scored when that is decided, or, with a queue on disk, when its spans were sent on.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.servers import (
    DEFAULT_SETTLE_S,
    HERE,
    STALLED_S,
    Run,
    bare_server,
    cpu_s,
    load,
    process,
    resident,
    wait_for,
)
from support.ports import free_port

PROGRAM = shutil.which("otelcol")

SAMPLING = ("tail-sampling",)
DURABLE_SAMPLING = (*SAMPLING, "durable-queue")
DURABLE = (*DURABLE_SAMPLING, "no-sampling")

_DECIDED_TRACES = "otelcol_processor_tail_sampling_global_count_traces_sampled_total"
_SENT_SPANS = "otelcol_exporter_sent_spans_total"


def measure_collector(folder: Path, mix: str, configs: Sequence[str], seconds: float) -> Run:
    """The Collector with these files of `otelcol/`, each laid over the one before it."""
    assert PROGRAM is not None
    otlp_port, metrics_port = free_port(), free_port()
    files = [f"--config={HERE / 'otelcol' / name}.yaml" for name in configs]
    with ExitStack() as running:
        next_port = running.enter_context(bare_server())[1]
        environment = {
            "OTLP_PORT": str(otlp_port),
            "METRICS_PORT": str(metrics_port),
            "NEXT_PORT": str(next_port),
            "STORAGE": tempfile.mkdtemp(dir=folder),
        }
        server = running.enter_context(process(PROGRAM, *files, environment=environment))
        _wait_until_ready(metrics_port)
        idle_s, began = cpu_s(server.pid), time.monotonic()
        sent = load(otlp_port, mix, seconds=seconds)
        if configs == SAMPLING:
            wait_for(metrics_port, _DECIDED_TRACES, sent["invocations"])
        else:
            wait_for(metrics_port, _SENT_SPANS, sent["spans"])
        scored_s = time.monotonic() - began - (0 if configs == DURABLE else DEFAULT_SETTLE_S)
        return Run(sent, scored_s, cpu_s(server.pid) - idle_s, resident(server.pid, "VmHWM"))


def _wait_until_ready(metrics_port: int) -> None:
    end = time.monotonic() + STALLED_S
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
