"""Every score is the one that independent packages give, but for named differences; `make oracles`
asks the packages themselves.

By default golden files stand in for the packages, which take 500 MB. `ORACLES_RECORD=1 make
oracles` writes these files anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from json import dumps
from typing import Any

import pytest

from .cases import Case
from .check_comparisons import CHECKS
from .comparisons import TRAJECTORIES_AND_TEXTS, Comparison, Oracle
from .differences import Scoring
from .records import Record, asked, generated, golden, write_golden

PYTHON = os.environ.get("ORACLES_PYTHON")
CASES = int(os.environ.get("ORACLES_CASES") or "10000")
RECORD = bool(os.environ.get("ORACLES_RECORD"))
GOLDEN_CASES = 500

ORACLES = (*TRAJECTORIES_AND_TEXTS, *CHECKS)


def of(oracle: Oracle, *more: Comparison, name: str) -> Any:
    """Parameters of a test. `make oracles` runs all of one oracle in one process, which asks it
    once.
    """
    return pytest.param(oracle, *more, id=name, marks=pytest.mark.xdist_group(oracle.runner))


EACH = pytest.mark.parametrize("oracle", [of(one, name=one.runner) for one in ORACLES])
SIDE_BY_SIDE = pytest.mark.parametrize(
    ("oracle", "comparison"),
    [
        of(oracle, comparison, name=f"{oracle.runner}: {comparison.result}")
        for oracle in ORACLES
        for comparison in oracle.comparisons
    ],
)


@cache
def records(oracle: Oracle) -> list[Record]:
    if PYTHON is None:
        return golden(oracle.runner)
    versions, answers = asked(PYTHON, oracle.runner, generated(oracle.cases, CASES))
    if RECORD:
        write_golden(oracle.runner, versions, answers[:GOLDEN_CASES])
    return answers


def mismatches(
    oracle: Oracle, result: str, scoring: Scoring
) -> Iterator[tuple[Case, float | None, float]]:
    """The cases that get another score, with both scores."""
    for case, results in records(oracle):
        ours, theirs = scoring(case), results[result]
        if ours is None or abs(ours - theirs) > 1e-9:
            yield case, ours, theirs


@pytest.mark.slow
@SIDE_BY_SIDE
def test_scores_are_those_of_the_oracle_but_for_the_named_differences(
    oracle: Oracle, comparison: Comparison
) -> None:
    wrong = mismatches(oracle, comparison.result, comparison.as_oracle())
    assert sorted(wrong, key=lambda one: len(dumps(one)))[:3] == []


@SIDE_BY_SIDE
def test_every_named_difference_occurs(oracle: Oracle, comparison: Comparison) -> None:
    without = {
        difference.name: comparison.as_oracle(but=difference)
        for difference in comparison.differences
    }
    assert [
        name
        for name, scoring in without.items()
        if not any(mismatches(oracle, comparison.result, scoring))
    ] == []


@EACH
def test_golden_cases_are_the_generated_ones_on_this_python(oracle: Oracle) -> None:
    kept = [
        dumps(record.case, ensure_ascii=False, separators=(",", ":"))
        for record in golden(oracle.runner)
    ]
    assert kept == generated(oracle.cases, GOLDEN_CASES)


@pytest.mark.skipif(PYTHON is None, reason="asks the packages themselves: see `make oracles`")
@EACH
def test_golden_files_hold_what_the_packages_say(oracle: Oracle) -> None:
    kept = [record.results for record in golden(oracle.runner)][:CASES]
    assert kept == [record.results for record in records(oracle)][:GOLDEN_CASES]
