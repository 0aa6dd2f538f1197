"""Prints invocations one by one: what the user said, expected and actual answer, and both
trajectories side by side. Failures come first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console

from pathgauge.collector.cli.output.numbers import number, verdict_text
from pathgauge.collector.cli.output.printing import Column, Table, clean, print_row, print_text
from pathgauge.collector.cli.output.report import STYLES
from pathgauge.collector.cli.output.side_by_side import Mark, Row, rows
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Result
from pathgauge.collector.offline.coverage import unscored_reason
from pathgauge.collector.offline.gate import Gate
from pathgauge.collector.offline.gate_lines import UNNAMED
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.types import ExpectedCall

MAX_TEXT_CHARS = 2000
"""Longer texts of users and agents lose their end."""

LEGEND = "= matched, ~ called with other arguments, - missing, + unexpected"
_MARK_STYLES: dict[Mark, str] = {"=": "", "~": "yellow", "-": "red", "+": "red"}
_FAILED, _UNSCORED, _OTHER = range(3)


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
        print_text(out, LEGEND, style="dim")
        print_text(out, "")


def _print_evaluation(evaluation: Evaluation, out: Console) -> bool:
    """Returns whether trajectories were shown."""
    invocation = evaluation.invocation
    names = [
        invocation.agent or UNNAMED,
        invocation.scenario_id or "",
        f"trace {invocation.trace_id}",
    ]
    print_text(out, " ".join(filter(None, names)), style="bold")
    for heading, text in _texts(evaluation):
        _print_passage(heading, text, out)
    for result in evaluation.results:
        value = "" if result.score.value is None else f" {number(result.score.value)}"
        verdict = verdict_text(result.verdict)
        line = f"{result.criterion.name}{value} {verdict}: {result.score.explanation}"
        print_text(out, line, indent=2, style=STYLES[result.verdict])
    comparisons = _comparisons(evaluation)
    for criteria, compared in comparisons.items():
        print_text(out, criteria, indent=2, style="dim")
        _print_rows(compared, out)
    print_text(out, "")
    return bool(comparisons)


def _texts(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    turn, invocation = evaluation.match.turn, evaluation.invocation
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


def _comparisons(evaluation: Evaluation) -> dict[str, list[Row]]:
    """The different comparisons, by the names of the criteria that made them."""
    found: dict[tuple[Row, ...], list[str]] = {}
    for result in evaluation.results:
        if "matched" in result.score.details:
            compared = rows(
                result.score.details,
                evaluation.invocation.tool_calls,
                _expected(evaluation, result),
            )
            found.setdefault(tuple(compared), []).append(result.criterion.name)
    return {", ".join(names): list(compared) for compared, names in found.items() if compared}


def _expected(evaluation: Evaluation, result: Result) -> tuple[ExpectedCall, ...]:
    turn = evaluation.match.turn
    if turn is None:
        return ()
    trajectories = (turn.tool_calls or (), *turn.alternatives)
    return trajectories[result.score.details.get("alternative", 0)]


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
    if row.mark == "~":
        print_text(out, f"~ expected {row.expected}", indent=2, style=style)
        print_text(out, f"  actual {row.actual}", indent=2, style=style)
    else:
        print_text(out, f"{row.mark} {row.actual or row.expected}", indent=2, style=style)
