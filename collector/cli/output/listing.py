"""Prints a list of things in the form that was asked for: a table for a terminal, cells separated
by tabs for a pipe, JSON lines, or CSV.

CSV is read by spreadsheets, which run a cell that begins like a formula. Names come from telemetry,
so anybody could write one: such a cell gets an apostrophe in front.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import typer
from pydantic import BaseModel
from rich.console import Console

from pathgauge.collector.cli.output.json_output import json_line
from pathgauge.collector.cli.output.printing import Column, Table, clean, print_row, print_text

Form = Literal["text", "json", "csv"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Heading(NamedTuple):
    """A column."""

    name: str
    right: bool = False
    """Whether a terminal shows its cells aligned to the right."""
    on_terminal: bool = True
    """Whether a terminal shows it. A pipe and CSV have every column."""


class Entry(NamedTuple):
    """One thing of a list."""

    cells: Sequence[str | float | None]
    """Numbers are never formulas. `None` is empty."""
    answer: BaseModel
    """What JSON shows of it."""
    style: str = ""


class Listing:
    """Prints entries, all at once or as they come."""

    def __init__(self, headings: Sequence[Heading], form: Form, out: Console) -> None:
        self._headings = headings
        self._form = form
        self._out = out

    def print(self, entries: Iterable[Entry]) -> None:
        """Print the headings, where the form has some, and all entries."""
        if self._form == "text" and self._out.is_terminal:
            self._print_table(entries)
            return
        self.print_headings()
        for entry in entries:
            self.print_one(entry)

    def print_headings(self) -> None:
        """Print the names of the columns, unless the form has none."""
        names = [heading.name for heading in self._headings]
        if self._form == "csv":
            typer.echo(_csv_line(names), nl=False)
        elif self._form == "text" and not self._out.is_terminal:
            print_row(self._out, names)

    def print_one(self, entry: Entry) -> None:
        """Print an entry on a line of its own."""
        match self._form:
            case "json":
                typer.echo(json_line(entry.answer.model_dump(mode="json")))
            case "csv":
                typer.echo(_csv_line(entry.cells), nl=False)
            case _ if self._out.is_terminal:
                cells = filter(None, self._shown(entry.cells))
                print_text(self._out, "  ".join(cells), style=entry.style)
            case _:
                print_row(self._out, map(_text, entry.cells))
        self._out.file.flush()

    def _print_table(self, entries: Iterable[Entry]) -> None:
        shown = [heading for heading in self._headings if heading.on_terminal]
        table = Table(*(Column(heading.name, heading.right) for heading in shown))
        for entry in entries:
            table.add(*self._shown(entry.cells), style=entry.style)
        table.print(self._out)

    def _shown(self, cells: Sequence[str | float | None]) -> list[str]:
        pairs = zip(self._headings, cells, strict=True)
        return [_text(cell) for heading, cell in pairs if heading.on_terminal]


def print_of_tenants(
    headings: Sequence[Heading],
    entries: Iterable[tuple[str, Entry]],
    out: Console,
    *,
    with_tenant: bool,
) -> None:
    """Print entries as text, with the tenant of each in front if wanted."""
    if not with_tenant:
        Listing(headings, "text", out).print(entry for _, entry in entries)
        return
    Listing((Heading("tenant"), *headings), "text", out).print(
        entry._replace(cells=(tenant, *entry.cells)) for tenant, entry in entries
    )


def _csv_line(cells: Iterable[str | float | None]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(map(_csv_cell, cells))
    return line.getvalue()


def _csv_cell(cell: str | float | None) -> str:
    text = _text(cell)
    if isinstance(cell, str) and text.startswith(_FORMULA):
        return f"'{clean(text)}"
    return clean(text)


def _text(cell: str | float | None) -> str:
    return "" if cell is None else str(cell)
