"""The plans of docs/scaling.md follow from its figures and its rules."""

from __future__ import annotations

import math
import re

import pytest

from support.repository import DOCS

TEXT = (DOCS / "scaling.md").read_text(encoding="utf-8")
SPANS, BUSY, WEEK_S, MAX_BYTES = 20, 0.7, 7 * 86_400, 50 * 2**30
"""Spans of an invocation, the share of a core, and the `store` of the example."""


def figure(name: str) -> list[float]:
    """The numbers behind a measured unit."""
    [found] = re.findall(rf"^\| {re.escape(name)} \| (.*) \|$", TEXT, re.MULTILINE)
    return [float(number.replace(",", "")) for number in re.findall(r"[\d,.]*\d", found)]


def rows(head: str) -> list[list[str]]:
    """The cells of the table with this head."""
    lines = TEXT.partition(f"| {head} |")[2].splitlines()[2:]
    table = lines[: next(at for at, line in enumerate(lines) if not line)]
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in table]


def number(cell: str) -> float:
    """The last number of a cell: that of one cluster."""
    return float(re.findall(r"[\d,.]*\d", cell)[-1].replace(",", ""))


PLANS = rows("load | shape | gateways | scorers | partitions | gauge | breaks first")
STORED = rows(
    "a cluster of | results/s | rows inserted/s | commits/s | disk for 7 days | kept with 50 GiB"
)


@pytest.mark.parametrize(("plan", "stored"), [*zip(PLANS, STORED, strict=True)])
def test_a_plan_obeys_the_rules(plan: list[str], stored: list[str]) -> None:
    spans, invocations = number(stored[0]), number(stored[0]) / SPANS
    load, shape, gateways, scorers, partitions, gauge, _ = plan
    clusters = number(shape.split(" clusters")[0]) if " clusters" in shape else 1
    assert clusters * spans >= number(load)
    [gateway_us], [scorer_us], [gauge_us] = (
        figure(f"CPU of {one}")
        for one in ("a gateway for a span", "a scorer for a span", "the gauge for an invocation")
    )
    assert number(gateways) == math.ceil(spans * gateway_us / 1e6 / BUSY) + 1
    assert number(scorers) == math.ceil(spans * scorer_us / 1e6 / BUSY) + 1
    assert number(scorers) <= number(partitions) <= 8 * (number(scorers) - 1)
    assert number(gauge) == round(invocations * gauge_us / 1e6, 2) <= BUSY
    size, counted = figure("PostgreSQL for a result of five criteria, with indexes")
    inserted = figure("rows that are inserted for an invocation with evidence")[0]
    assert [number(cell) for cell in stored[1:5]] == [
        invocations,
        invocations * inserted,
        number(partitions) + 1,
        round(invocations * size * WEEK_S / 1e9),
    ]
    kept_h = MAX_BYTES / (invocations * counted) / 3600
    assert number(stored[5]) == pytest.approx(kept_h, abs=0.2)
