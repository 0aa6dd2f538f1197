"""Captures of real frameworks have exactly the expected invocations, in any order of arrival."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.cli.output.json_output import invocation_object
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.invocations import DEFAULT_KEYS
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.offline.replay import replay
from pathgauge.collector.offline.trace_files import read_path
from support.arrival import final_invocations
from support.examples import examples
from support.repository import CAPTURES
from support.thinning import thinned

CASES = sorted(
    path.parent.relative_to(CAPTURES).as_posix() for path in CAPTURES.glob("*/*/invocations.json")
)


@pytest.mark.parametrize("case", thinned(CASES, 95))
def test_a_capture_is_read_into_the_invocations_that_really_happened(case: str) -> None:
    [replayed] = replay([CAPTURES / case], Evaluator(()), ReferenceSet(), DEFAULT_KEYS)
    read = [invocation_object(evaluation.invocation, "") for evaluation in replayed.evaluations]
    expected = json.loads((CAPTURES / case / "invocations.json").read_text())
    assert [
        {key: value for key, value in one.items() if key != "source"} for one in read
    ] == expected


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(CASES), st.randoms(use_true_random=False), st.integers(1, 40), st.floats(0, 20)
)
def test_order_batching_splitting_and_duplication_change_nothing(
    case: str, random: Random, batch: int, pause: float
) -> None:
    """`pause` above the settle time has traces read in pieces, so that the rest arrives late and
    revises.
    """
    files = read_path(CAPTURES / case)
    items: list[Span | LogRecord] = [*files.spans, *files.logs]
    items += random.sample(items, len(items) // 3)
    random.shuffle(items)
    assert final_invocations(items, batch, pause) == final_invocations(
        [*files.spans, *files.logs], len(items), 0
    )
