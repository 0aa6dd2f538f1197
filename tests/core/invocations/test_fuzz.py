"""Damaged captures of every dialect: reading never raises, and its results are well-formed. `make
fuzz` tries 200,000 damaged captures.
"""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from random import Random
from typing import NoReturn

import orjson
import pytest

from pathgauge.collector.cli.output.json_output import invocation_object
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.offline.trace_files import read_path
from pathgauge.scorers.types import Invocation
from support.dialects import read
from support.mutation import mutated
from support.repository import CAPTURES

MUTATIONS = int(os.environ.get("FUZZ_MUTATIONS", "1500"))
SEED = int(os.environ.get("FUZZ_SEED") or time.time_ns() % 10**9)
BATCHES = 10
LONGEST_S = 10


@cache
def traces() -> list[tuple[list[Span], tuple[LogRecord, ...]]]:
    found = []
    for capture in sorted({path.parent for path in CAPTURES.glob("*/*/invocations.json")}):
        files = read_path(capture)
        spans: dict[str, list[Span]] = defaultdict(list)
        for span in files.spans:
            spans[span.trace_id].append(span)
        logs: dict[str, list[LogRecord]] = defaultdict(list)
        for log in files.logs:
            logs[log.trace_id].append(log)
        found += [
            (some, tuple(logs[trace_id])) for trace_id, some in spans.items() if len(some) < 60
        ]
    return found


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_damaged_trace_is_read_without_an_error(batch: int) -> None:
    for number in range(MUTATIONS // BATCHES):
        seed = f"{SEED}/{batch}/{number}"
        random = Random(seed)
        spans, logs = random.choice(traces())
        damaged = mutated(spans, random)
        try:
            with deadline():
                for invocation in read(Trace("", spans[0].trace_id, tuple(damaged), logs)):
                    check(invocation)
        except Exception as error:
            pytest.fail(
                f"FUZZ_SEED={SEED}: {seed}: {error!r} in"
                f" {[span for span in damaged if span not in spans]}",
                pytrace=True,
            )


@contextmanager
def deadline() -> Iterator[None]:
    """What never ends takes all memory with it, and with that the seed that would have told."""

    def give_up(*_: object) -> NoReturn:
        raise TimeoutError(f"still reading after {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check(invocation: Invocation) -> None:
    """What is said can be written as JSON, and nothing unknown is given as an empty value."""
    orjson.dumps(invocation_object(invocation, ""), option=orjson.OPT_NON_STR_KEYS, default=repr)
    ids = (invocation.scenario_id, invocation.conversation_id, invocation.run_id)
    names = (invocation.agent, invocation.model, invocation.user_input)
    assert all(name is None or (isinstance(name, str) and name) for name in (*ids, *names)), (
        ids,
        names,
    )
    assert invocation.final_response is None or isinstance(invocation.final_response, str)
    for count in (invocation.input_tokens, invocation.output_tokens):
        assert count is None or (type(count) is int and count >= 0), count
    assert all(
        isinstance(name, str) and name and isinstance(schema, dict)
        for name, schema in invocation.tool_schemas.items()
    )
    for call in invocation.tool_calls:
        assert call.name
        assert isinstance(call.name, str)
        assert call.arguments is None or isinstance(call.arguments, dict | str), call
        assert call.error is None or (call.error and isinstance(call.error, str)), call
