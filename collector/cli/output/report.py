"""Results for people at a terminal: gates and catalogues come in, tables and text go out to a
console.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pathgauge.collector.cli.output.scorer_catalogue import CatalogueEntry, Option
from pathgauge.collector.cli.output.side_by_side import Mark, Row, rows
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Result
from pathgauge.collector.offline.gate import NOTHING_JUDGED, UNNAMED, Gate, Line
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.types import ExpectedCall

MAX_REASONS = 3
"""Explanations shown for one line, and kinds of invocations without reference."""

_MARK_STYLES: dict[Mark, str] = {"=": "", "~": "yellow", "-": "red", "+": "red"}
_STYLES = {
    "passed": "green",
    "failed": "bold red",
    "error": "bold red",
    "not_evaluated": "yellow",
    "informational": "",
}


def print_gate(gate: Gate, out: Console) -> None:
    """The table of all lines."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(
        "agent, scenario, criterion", no_wrap=True, overflow="ignore"
    )  # never cut, as people copy names
    for heading in ("score", "threshold", "judged"):
        table.add_column(heading, justify="right")
    table.add_column("verdict")
    above = None
    for line in gate.lines:
        if (line.agent, line.scenario) != above:
            above = line.agent, line.scenario
            table.add_row(_text(f"{line.agent} {line.scenario}".rstrip()), style="bold")
        table.add_row(*_cells(line), style=_STYLES[line.verdict])
    if gate.lines:
        out.print(table)


def print_reasons(gate: Gate, replayed: Sequence[Replayed], err: Console) -> None:
    """What was not matched, the failures in words with their reasons, and whether nothing was
    judged at all.
    """
    unmatched = _unmatched(replayed)
    for reason, count in unmatched.most_common(MAX_REASONS):
        err.print(_text(f"{count} x no reference: {reason}"), soft_wrap=True)
    if len(unmatched) > MAX_REASONS:
        err.print(Text(f"and {len(unmatched) - MAX_REASONS} more scenarios without reference"))
    for line in gate.lines:
        _print_reasons(line, err)
    if not gate.judged:
        err.print(Text(NOTHING_JUDGED), soft_wrap=True)


def _print_reasons(line: Line, err: Console) -> None:
    if line.verdict in ("failed", "error"):
        err.print(_text(str(line)), soft_wrap=True)
    elif line.verdict == "not_evaluated":
        err.print(
            _text(f"{line.criterion.name} for {line.agent} not evaluated [{line.scenario}]"),
            soft_wrap=True,
        )
    else:
        return
    for explanation in line.explanations[:MAX_REASONS]:
        err.print(_text(f"    {explanation}"), soft_wrap=True)
    if len(line.explanations) > MAX_REASONS:
        err.print(
            Text(
                f"    and {len(line.explanations) - MAX_REASONS} more reasons: --json has them all"
            )
        )


def print_details(replayed: Iterable[Replayed], out: Console) -> None:
    """Every invocation that a reference was found for, or that failed: what each criterion says and
    why, and the two trajectories.
    """
    for one in replayed:
        for evaluation in one.evaluations:
            if evaluation.match.reference is not None or any(
                result.verdict in ("failed", "error") for result in evaluation.results
            ):
                _print_evaluation(evaluation, out)


def _print_evaluation(evaluation: Evaluation, out: Console) -> None:
    invocation = evaluation.invocation
    names = [
        invocation.agent or UNNAMED,
        invocation.scenario_id or "",
        f"trace {invocation.trace_id}",
    ]
    out.print(_text(" ".join(filter(None, names))), style="bold", soft_wrap=True)
    for result in evaluation.results:
        value = "" if result.score.value is None else f" {result.score.value:.3f}"
        line = (
            f"  {result.criterion.name}{value} {result.verdict.replace('_', ' ')}:"
            f" {result.score.explanation}"
        )
        out.print(_text(line), style=_STYLES[result.verdict], soft_wrap=True)
    for criteria, compared in _comparisons(evaluation).items():
        out.print(Padding(_side_by_side(criteria, compared), (0, 0, 0, 2), expand=False))
    out.print()


def _comparisons(evaluation: Evaluation) -> dict[str, list[Row]]:
    """The comparisons that differ from each other, by the criteria that saw them."""
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


def _side_by_side(criteria: str, compared: Iterable[Row]) -> Table:
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, title=criteria, title_justify="left", title_style="dim"
    )
    table.add_column("expected", overflow="fold")
    table.add_column("", width=1)
    table.add_column("done", overflow="fold")
    for row in compared:
        table.add_row(
            _text(row.expected), row.mark, _text(row.actual), style=_MARK_STYLES[row.mark]
        )
    return table


def _text(text: str) -> Text:
    """Text as it is: what telemetry brings is no markup, and cannot steer the terminal."""
    return Text("".join(char if char.isprintable() else repr(char)[1:-1] for char in text))


def _cells(line: Line) -> tuple[str | Text, ...]:
    threshold = line.criterion.threshold
    return (
        _text(f"  {line.criterion.name}"),
        (
            ""
            if line.score is None
            else f"{line.score:.3f}" + ("" if line.deviation is None else f" ±{line.deviation:.3f}")
        ),
        "" if threshold is None else f"{threshold:.3f}",
        (
            str(line.evaluated)
            if line.evaluated == line.invocations
            else f"{line.evaluated} of {line.invocations}"
        ),
        line.verdict.replace("_", " "),
    )


def _unmatched(replayed: Iterable[Replayed]) -> Counter[str]:
    return Counter(
        e.match.unmatched.replace("_", " ")
        + (f" {scenario!r}" if (scenario := e.invocation.scenario_id) else "")
        for one in replayed
        for e in one.evaluations
        if e.match.unmatched
    )


def print_catalogue(entries: Iterable[CatalogueEntry], out: Console) -> None:
    """A paragraph a scorer, which fits any width: its name and kind, what it says, and its options."""
    for entry in entries:
        out.print(Text.assemble((entry.name, "bold"), f"  {_kind(entry)}"))
        out.print(Padding(Text(entry.summary), (0, 0, 0, 2), expand=False))
        for option in entry.options:
            out.print(Padding(Text(_option(option)), (0, 0, 0, 4), expand=False))
            out.print(Padding(Text(option.text), (0, 0, 0, 8), expand=False), style="dim")
        out.print()


def _kind(entry: CatalogueEntry) -> str:
    bounds = f"from {entry.low:g}" if math.isinf(entry.high) else f"{entry.low:g} to {entry.high:g}"
    better = "higher is better" if entry.higher_is_better else "lower is better"
    return ", ".join([bounds, better, *(["needs a reference"] if entry.needs_reference else [])])


def _option(option: Option) -> str:
    default = str(option.default).lower() if isinstance(option.default, bool) else option.default
    return f"{option.name}: {option.type}" + (" (required)" if option.required else f" = {default}")
