"""Runs `pathgauge` with timers around the stages of a span, and prints the CPU time of each stage
as JSON when it ends.

CPU is that of the thread that runs the stage, without the stages inside it. What a thread uses
beside its stages is a stage of its own, so that all stages together are the whole process. A timer
costs a microsecond a call; only functions that are called once for a request, trace or invocation
have one.

usage: staged_service.py serve --config FILE
"""

from __future__ import annotations

import functools
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from pathgauge.collector.cli import app
from pathgauge.collector.core import published, trace_reading
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.traces import Assembler
from pathgauge.collector.receivers import export
from pathgauge.collector.service import process_end
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.store import journal
from pathgauge.collector.store.journal import Packer
from pathgauge.collector.store.sqlite.database import Database

FIRST = "receive: decode and validate"
STAGES: tuple[tuple[str, Any, str], ...] = (
    (FIRST, export, "decode_batch"),
    ("journal: pack (zstd)", Packer, "pack"),
    ("journal: insert rows", journal, "append"),
    ("commit of {1}", Database, "transact"),
    ("assemble", Assembler, "feed"),
    ("assemble", Assembler, "expire"),
    ("read", trace_reading, "readings"),
    ("score", Evaluator, "evaluate"),
    ("fingerprint", published, "fingerprint"),
    ("sink", PrometheusSink, "publish"),
    ("publish", Publisher, "publish_if_due"),
)
"""Name, owner and attribute of each function. A missing one stops the benchmark. The name may
contain an argument by its number.
"""

THREADS = {
    "MainThread": "receive: gRPC, limits, answers",
    "store": "journal: hand-over",
    "pipeline": "rest of the pipeline thread",
}
"""The rest of each thread."""
NATIVE = "gRPC in C"
"""Threads that Python did not start."""
OTHER = "other threads"


class Stopwatch:
    """Adds up the CPU time of stages, from the first request on."""

    def __init__(self) -> None:
        self.cpu_s: defaultdict[str, float] = defaultdict(float)
        self._of_thread = threading.local()
        self._main_before_s: float | None = None
        self._process_before_s = 0.0

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, or generator function, with a timer."""

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if stage == FIRST and self._main_before_s is None:
                self._main_before_s = time.thread_time() - self._inside()
                self._process_before_s = time.process_time()
            result = self._run(stage.format(*arguments), lambda: function(*arguments, **named))
            return self._steps(stage, result) if isinstance(result, Iterator) else result

        return call

    def thread_ended(self, name: str) -> None:
        """Add what the current thread has used outside of all stages."""
        used = time.thread_time() - self._inside()
        if name == "MainThread":
            used -= self._main_before_s or 0.0
        self.cpu_s[THREADS.get(name, OTHER)] += used

    def process_ended(self) -> dict[str, float]:
        """The CPU time of each stage."""
        used = time.process_time() - self._process_before_s
        self.cpu_s[NATIVE] += used - sum(self.cpu_s.values())
        return dict(self.cpu_s)

    def _run(self, stage: str, work: Callable[[], Any]) -> Any:
        inside_before, began = self._inside(), time.thread_time()
        try:
            return work()
        finally:
            used = time.thread_time() - began
            nested = self._inside() - inside_before
            self.cpu_s[stage] += used - nested
            self._of_thread.inside = inside_before + used

    def _steps(self, stage: str, items: Iterator[Any]) -> Iterator[Any]:
        end = object()
        while (item := self._run(stage, lambda: next(items, end))) is not end:
            yield item

    def _inside(self) -> float:
        return getattr(self._of_thread, "inside", 0.0)


def main() -> None:
    """Run the command line with timers."""
    stopwatch = Stopwatch()
    for stage, owner, name in STAGES:
        setattr(owner, name, stopwatch.timed(stage, getattr(owner, name)))
    run = threading.Thread.run

    def timed_run(thread: threading.Thread) -> None:
        run(thread)
        stopwatch.thread_ended(thread.name)

    threading.Thread.run = timed_run  # type: ignore[method-assign, assignment]
    end_process = process_end.end_process

    def report() -> None:
        stopwatch.thread_ended("MainThread")
        print(json.dumps(stopwatch.process_ended()), flush=True)
        end_process()

    process_end.end_process = report  # type: ignore[assignment]
    sys.argv[0] = "pathgauge"
    app()


if __name__ == "__main__":
    main()
