"""What both reports of `pathgauge score` show of an invocation, the HTML page and the Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pathgauge.collector.cli.output.aggregates import aggregate_cells, overall_cells, overall_of
from pathgauge.collector.cli.output.details import Sourced, passages
from pathgauge.collector.cli.output.numbers import number, verdict_text
from pathgauge.collector.core.evaluations.evaluator import Verdict
from pathgauge.collector.core.evidence.evidence import (
    Evidence,
    evidence_of,
    overall,
)
from pathgauge.collector.offline.coverage import counts
from pathgauge.collector.offline.gate import Gate
from pathgauge.collector.offline.gate_lines import UNNAMED, Line
from pathgauge.scorers.matching.wording import cut

MAX_REASONS = 20
"""Reasons why the gate does not pass, and why invocations have no reference."""
MAX_TEXT_CHARS = 10_000
"""Longer texts of users and agents lose their end."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One line of the gate."""

    agent: str
    scenario: str
    criterion: str
    score: str
    threshold: str
    judged: str
    verdict: Verdict | str
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunView:
    """One invocation."""

    source: str
    evidence: Evidence
    verdict: Verdict
    agent: str
    scenario: str
    failure: str
    """Category and signature; empty if it did not fail."""
    passages: Sequence[tuple[str, str]]
    """What the user said, and the answers, each with its heading."""


def summary(gate: Gate) -> Iterator[SummaryRow]:
    """The lines of the gate, what sums up several of them, and the scenarios that were not run."""
    yield from map(_line, gate.lines)
    for aggregate in gate.aggregates:
        _, score, threshold, judged, verdict = aggregate_cells(aggregate)
        name = aggregate.criterion.name
        yield SummaryRow(aggregate.name, "", name, score, threshold, judged, verdict)
    for one in overall_of(gate):
        _, score, _, judged, _ = overall_cells(one)
        yield SummaryRow("all invocations", "", one.metric, score, "", judged, "")
    for scenario in gate.not_run:
        note = "required" if scenario in gate.missing else ""
        yield SummaryRow("", scenario, "", "", "", "0", "not run", note)


def _line(line: Line) -> SummaryRow:
    score = "" if line.score is None else number(line.score)
    if line.deviation is not None:
        score = f"{score} ±{number(line.deviation)}"
    threshold = line.criterion.threshold
    return SummaryRow(
        line.agent,
        line.scenario,
        line.criterion.name,
        score,
        "" if threshold is None else number(threshold),
        f"{line.evaluated} of {line.invocations}",
        verdict_text(line.verdict),
        f"not scored: {counts(line.unscored)}" if line.unscored else "",
    )


def runs(shown: Iterable[Sourced]) -> Iterator[RunView]:
    """Each invocation for a report."""
    for source, evaluation in shown:
        evidence = evidence_of(evaluation)
        invocation, failure = evidence.invocation, evidence.failure
        yield RunView(
            source,
            evidence,
            overall(one.verdict for one in evidence.criteria),
            invocation.agent or UNNAMED,
            invocation.scenario_id or "",
            "" if failure is None else f"{failure.category}: {failure.signature}",
            [(heading, cut(text, MAX_TEXT_CHARS)) for heading, text in passages(evidence)],
        )
