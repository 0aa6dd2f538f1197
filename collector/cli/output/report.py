"""Prints the verdict of `pathgauge score`: the table of the gate, and why it does not pass."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from pathgauge.collector.cli.output.aggregates import (
    aggregate_cells,
    overall_cells,
    overall_of,
    plain_rows,
)
from pathgauge.collector.cli.output.numbers import number, verdict_text
from pathgauge.collector.cli.output.printing import Column, Table, print_row, print_text
from pathgauge.collector.offline.coverage import counts
from pathgauge.collector.offline.gate import Gate
from pathgauge.collector.offline.gate_lines import Line
from pathgauge.scorers.matching.wording import counted

MAX_REASONS = 3
"""Explanations shown for one line, and reasons shown for invocations without a reference."""

_STYLES = {
    "passed": "green",
    "failed": "bold red",
    "error": "bold red",
    "not_evaluated": "yellow",
    "informational": "",
}
_COLUMNS = (
    "agent",
    "scenario",
    "criterion",
    "score",
    "deviation",
    "threshold",
    "judged",
    "invocations",
    "verdict",
    "not scored",
)
"""The columns in a pipe."""


def style_of(verdict: str) -> str:
    """How a verdict is printed; that of a later version plainly."""
    return _STYLES.get(verdict, "")


def print_gate(gate: Gate, out: Console) -> None:
    """Print the lines and the scenarios that were not run: as a table, or in a pipe one row for
    each, with its cells separated by tabs.
    """
    if not gate.lines and not gate.not_run:
        return
    if out.is_terminal:
        _print_table(gate, out)
        return
    print_row(out, _COLUMNS)
    for line in gate.lines:
        print_row(out, _cells(line))
    for row in plain_rows(gate):
        print_row(out, row)
    for scenario in gate.not_run:
        required = "required" if scenario in gate.missing else ""
        print_row(out, ("", scenario, "", "", "", "", "0", "0", "not run", required))


def _cells(line: Line) -> Iterator[str]:
    yield from (line.agent, line.scenario, line.criterion.name)
    for value in (line.score, line.deviation, line.criterion.threshold):
        yield "" if value is None else number(value)
    yield from (str(line.evaluated), str(line.invocations))
    yield from (verdict_text(line.verdict), counts(line.unscored))


def _print_table(gate: Gate, out: Console) -> None:
    right = [Column(heading, right=True) for heading in ("score", "threshold", "judged")]
    table = Table(Column("agent, scenario, criterion"), *right, Column("verdict"))
    above = None
    for line in gate.lines:
        if (line.agent, line.scenario) != above:
            above = line.agent, line.scenario
            table.add(f"{line.agent} {line.scenario}".rstrip(), style="bold")
        _add_line(line, table)
    _add_sums(gate, table)
    for scenario in gate.not_run:
        if scenario in gate.missing:
            table.add(scenario, "", "", "0", "not run (required)", style="bold red")
        else:
            table.add(scenario, "", "", "0", "not run", style="yellow")
    table.print(out)
    if any(line.deviation is not None for line in gate.lines):
        print_text(out, "±: standard deviation of the test runs", style="dim")
    if overall_of(gate):
        print_text(out, "all invocations ±: standard deviation of their scores", style="dim")
    if gate.aggregates:
        print_text(out, "( ): 95 % confidence interval", style="dim")


def _add_sums(gate: Gate, table: Table) -> None:
    """Add what sums up several scenarios."""
    above = ""
    for line in gate.aggregates:
        if line.name != above:
            above = line.name
            table.add(f"over {above}", style="bold")
        table.add(*aggregate_cells(line), style=style_of(line.verdict))
    overall = overall_of(gate)
    if overall:
        table.add("all invocations", style="bold")
    for one in overall:
        table.add(*overall_cells(one))


def _add_line(line: Line, table: Table) -> None:
    threshold = line.criterion.threshold
    judged = str(line.evaluated)
    if line.evaluated != line.invocations:
        judged = f"{judged} of {line.invocations}"
    table.add(
        f"  {line.criterion.name}",
        _score(line),
        "" if threshold is None else number(threshold),
        judged,
        verdict_text(line.verdict),
        style=style_of(line.verdict),
    )
    if line.unscored:
        table.add(f"    not scored: {counts(line.unscored)}", style="yellow")


def _score(line: Line) -> str:
    if line.score is None:
        return ""
    if line.deviation is None:
        return number(line.score)
    return f"{number(line.score)} ±{number(line.deviation)}"


def print_reasons(gate: Gate, err: Console) -> None:
    """Print why invocations had no reference, why lines failed, and what is missing."""
    for reason, count in list(gate.unmatched.items())[:MAX_REASONS]:
        print_text(err, f"{count} x no reference: {reason}")
    if len(gate.unmatched) > MAX_REASONS:
        more = len(gate.unmatched) - MAX_REASONS
        print_text(err, f"and {counted(more, 'more scenario')} without reference")
    for line in gate.lines:
        if line.verdict in ("failed", "error", "not_evaluated"):
            _print_reasons(line, err)
    for aggregate in gate.aggregates:
        if aggregate.verdict == "failed":
            print_text(err, str(aggregate))
    for gap in gate.gaps:
        print_text(err, gap)


def _print_reasons(line: Line, err: Console) -> None:
    print_text(err, _headline(line))
    for explanation in line.explanations[:MAX_REASONS]:
        print_text(err, explanation, indent=4)
    more = len(line.explanations) - MAX_REASONS
    if more > 0:
        print_text(err, f"and {counted(more, 'more reason')}: --json has them all", indent=4)


def _headline(line: Line) -> str:
    if line.verdict == "not_evaluated":  # has no score for `str(line)`
        return f"{line.criterion.name} for {line.agent} not evaluated [{line.scenario}]"
    return str(line)
