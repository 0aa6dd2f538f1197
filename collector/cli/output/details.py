"""Prints invocations one by one: what the user said, expected and actual answer, and both
trajectories side by side. Failures come first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from rich.cells import cell_len
from rich.console import Console

from pathgauge.collector.cli.output.numbers import number, verdict_text
from pathgauge.collector.cli.output.printing import Column, Table, clean, print_row, print_text
from pathgauge.collector.cli.output.report import style_of
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evidence.comparison import Mark, Row, comparisons
from pathgauge.collector.core.evidence.evidence import Evidence, evidence_of
from pathgauge.collector.offline.coverage import unscored_reason
from pathgauge.collector.offline.gate import Gate
from pathgauge.collector.offline.gate_lines import UNNAMED
from pathgauge.collector.offline.replay import Replayed

MAX_TEXT_CHARS = 2000
"""Longer texts of users and agents lose their end."""

LEGEND = "= matched, ~ other arguments, ? arguments not recorded, - missing, + unexpected"
_MARK_STYLES: dict[Mark, str] = {"=": "", "~": "yellow", "?": "yellow", "-": "red", "+": "red"}
_FAILED, _UNSCORED, _OTHER = range(3)


class Said(Protocol):
    """What one criterion said about an invocation."""

    @property
    def name(self) -> str:
        """The name of the criterion."""
        ...

    @property
    def verdict(self) -> str:
        """Whether it passed."""
        ...

    @property
    def value(self) -> float | None:
        """`None`: no score."""
        ...

    @property
    def explanation(self) -> str:
        """Why, in one line."""
        ...


class Sourced(NamedTuple):
    """An evaluation and the path of its trace file."""

    source: str
    evaluation: Evaluation


def failures(replayed: Iterable[Replayed], gate: Gate) -> list[Sourced]:
    """The invocations that failed or pull down an aggregate that failed, and then those without a
    score that the gate asks for.
    """
    return [sourced for rank, sourced in _ranked(replayed, gate) if rank < _OTHER]


def failures_first(replayed: Iterable[Replayed], gate: Gate) -> list[Sourced]:
    """The failures, and then the other invocations that have a reference."""
    return [
        sourced
        for rank, sourced in _ranked(replayed, gate)
        if rank < _OTHER or sourced.evaluation.match.reference is not None
    ]


def _ranked(replayed: Iterable[Replayed], gate: Gate) -> list[tuple[int, Sourced]]:
    asked = {coverage.criterion for coverage in gate.uncovered}
    ranked = [
        (_rank(evaluation, gate, asked), Sourced(one.source, evaluation))
        for one in replayed
        for evaluation in one.evaluations
    ]
    return sorted(ranked, key=lambda entry: entry[0])


def _rank(evaluation: Evaluation, gate: Gate, asked: Collection[str]) -> int:
    if any(result.verdict in ("failed", "error") for result in evaluation.results):
        return _FAILED
    if any(line.fails_because_of(evaluation) for line in gate.aggregates):
        return _FAILED
    for result in evaluation.results:
        if result.criterion.name in asked and unscored_reason(result) is not None:
            return _UNSCORED
    return _OTHER


def print_details(shown: Iterable[Sourced], out: Console) -> None:
    """Print each invocation, and what the marks between the trajectories mean."""
    compared = [_print_evaluation(one.evaluation, out) for one in shown]
    if any(compared):
        print_legend(out)


def print_legend(out: Console) -> None:
    """Print what the marks between the trajectories mean."""
    print_text(out, LEGEND, style="dim")
    print_text(out, "")


def _print_evaluation(evaluation: Evaluation, out: Console) -> bool:
    invocation = evaluation.invocation
    names = [
        invocation.agent or UNNAMED,
        invocation.scenario_id or "",
        f"trace {invocation.trace_id}",
    ]
    print_text(out, " ".join(filter(None, names)), style="bold")
    return print_evidence(evidence_of(evaluation), out)


def print_evidence(evidence: Evidence, out: Console) -> bool:
    """Print what explains one invocation; returns whether trajectories were shown."""
    for heading, text in passages(evidence):
        _print_passage(heading, text, out)
    for criterion in evidence.criteria:
        print_criterion(criterion, out)
    compared = comparisons(evidence)
    for criteria, rows in compared:
        print_text(out, ", ".join(criteria), indent=2, style="dim")
        _print_rows(rows, out)
    print_text(out, "")
    return bool(compared)


def print_criterion(criterion: Said, out: Console) -> None:
    """Print the value and the verdict of a criterion, and why."""
    value = "" if criterion.value is None else f" {number(criterion.value)}"
    why = f": {criterion.explanation}" if criterion.explanation else ""
    line = f"{criterion.name}{value} {verdict_text(criterion.verdict)}{why}"
    print_text(out, line, indent=2, style=style_of(criterion.verdict))


def passages(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """What the user said, and both answers, each with its heading."""
    turn, invocation = evidence.turn, evidence.invocation
    user_input = invocation.user_input
    expected = turn.response if turn is not None else None
    if user_input is None and turn is not None:
        user_input = turn.user_input
    if user_input is not None:
        yield "user", user_input
    if expected is not None:
        yield "expected answer", expected
    if invocation.final_response is not None:
        yield "actual answer", invocation.final_response
    elif expected is not None:
        yield "actual answer", "(not recorded)"


def _print_passage(heading: str, text: str, out: Console) -> None:
    if len(text) > MAX_TEXT_CHARS:
        text = f"{text[: MAX_TEXT_CHARS - 1]}…"
    first, *others = text.splitlines() or [""]
    print_text(out, f"{heading}: {first}".rstrip(), indent=2)
    for line in others:
        print_text(out, line, indent=4)


def _print_rows(compared: Sequence[Row], out: Console) -> None:
    """Side by side, or if that is too wide, one below the other."""
    if not out.is_terminal:
        print_row(out, ("  ", "expected", "actual"))
        for row in compared:
            print_row(out, (f"  {row.mark}", row.expected, row.actual))
        return
    widths = [max(cell_len(clean(cell)) for cell in cells) for cells in zip(*compared, strict=True)]
    if sum(widths) + 6 > out.width:
        for row in compared:
            _print_stacked(row, out)
        return
    table = Table(Column("  expected"), Column(""), Column("actual"))
    for row in compared:
        table.add(f"  {row.expected}", row.mark, row.actual, style=_MARK_STYLES[row.mark])
    table.print(out)


def _print_stacked(row: Row, out: Console) -> None:
    style = _MARK_STYLES[row.mark]
    if row.mark in ("~", "?"):
        print_text(out, f"{row.mark} expected {row.expected}", indent=2, style=style)
        print_text(out, f"  actual {row.actual}", indent=2, style=style)
    else:
        print_text(out, f"{row.mark} {row.actual or row.expected}", indent=2, style=style)
