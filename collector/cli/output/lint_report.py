"""Prints the report of `pathgauge lint`: the findings, then the table of mutations."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from pathgauge.collector.cli.output.printing import Column, Table, print_row, print_text
from pathgauge.collector.offline.linting.mutation_table import MutationTable, Row
from pathgauge.collector.offline.linting.report import Report
from pathgauge.scorers.matching.wording import counted


def print_report(report: Report, out: Console) -> None:
    """Print everything."""
    print_text(
        out,
        f"{counted(report.references, 'reference')}, matched by {report.matched} of the last"
        f" {counted(report.runs, 'run')}",
    )
    for finding in report.findings:
        print_text(out, str(finding), style="bold red" if finding.level == "problem" else "")
    if report.mutations.rows:
        print_text(out, "")
        _print_mutations(report.mutations, out)


def _print_mutations(table: MutationTable, out: Console) -> None:
    heading = ("mutation", "tried", "allowed", "noticed", *table.criteria)
    rows = [list(_cells(row, table)) for row in table.rows]
    if out.is_terminal:
        shown = Table(Column(heading[0]), *(Column(name, right=True) for name in heading[1:]))
        for cells in rows:
            shown.add(*cells)
        shown.print(out)
    else:
        print_row(out, heading)
        for cells in rows:
            print_row(out, cells)
    share = table.share
    if share is not None:
        text = f"criteria notice {share:.1%} of the mutations of {counted(table.runs, 'good run')}"
        print_text(out, text)
    for row in table.rows:
        for example in row.unnoticed:
            print_text(out, f"not noticed: {row.kind}, {example}")


def _cells(row: Row, table: MutationTable) -> Iterator[str]:
    yield from (row.kind, str(row.tried), str(row.allowed), f"{row.noticed}/{row.spoiled}")
    for name in table.criteria:
        yield str(row.by_criterion[name])
