"""Prints text and tables: laid out for the width of a terminal, plain for a pipe.

On a terminal no word is broken: lines break between words, and a table that does not fit becomes a
list. In a pipe every line stays whole, and cells are separated by one tab, for `cut` and `awk`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

_GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    heading: str
    right: bool = False
    """Whether the cells are aligned to the right."""


def clean(text: str) -> str:
    """Text without control characters: telemetry must not control the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def print_text(out: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    """Print one paragraph. Its further lines are indented by two more columns."""
    margin = " " * indent
    if not out.is_terminal:
        out.file.write(f"{margin}{clean(text)}\n")
        return
    lines = textwrap.wrap(
        clean(text),
        max(out.width, indent + len(_GAP) + 1),
        initial_indent=margin,
        subsequent_indent=margin + _GAP,
        break_long_words=False,
        break_on_hyphens=False,
    )
    out.print(Text("\n".join(lines)), style=style, soft_wrap=True)


def print_row(out: Console, cells: Iterable[str]) -> None:
    """Print cells for a pipe, separated by tabs."""
    out.file.write("\t".join(map(clean, cells)) + "\n")


class Table:
    """A table for a terminal: rows below headings, or a list if it is wider than the terminal."""

    def __init__(self, *columns: Column) -> None:
        """The first column is the name of a row; in a list it stands on a line of its own."""
        self._columns = columns
        self._rows: list[tuple[Sequence[str], str]] = []

    def add(self, *cells: str, style: str = "") -> None:
        """Add a row. Missing cells are empty; a row of one cell may be wider than its column."""
        self._rows.append(([*map(clean, cells)], style))

    def print(self, out: Console) -> None:
        """Print all rows; nothing if there is none."""
        if not self._rows:
            return
        widths = self._widths()
        if sum(widths) + len(_GAP) * (len(widths) - 1) > out.width:
            for cells, style in self._rows:
                self._print_list(cells, style, out)
            return
        self._print_row([column.heading for column in self._columns], widths, "bold", out)
        for cells, style in self._rows:
            self._print_row(cells, widths, style, out)

    def _widths(self) -> list[int]:
        widths = [cell_len(column.heading) for column in self._columns]
        for cells, _ in self._rows:
            if len(cells) > 1:
                widths = [
                    max(width, cell_len(cell)) for width, cell in zip(widths, cells, strict=True)
                ]
        return widths

    def _print_row(
        self, cells: Sequence[str], widths: Sequence[int], style: str, out: Console
    ) -> None:
        if len(cells) == 1:
            print_text(out, cells[0].lstrip(), indent=_margin(cells[0]), style=style)
            return
        padded = []
        for column, cell, width in zip(self._columns, cells, widths, strict=True):
            space = " " * (width - cell_len(cell))
            padded.append(space + cell if column.right else cell + space)
        out.print(Text(_GAP.join(padded).rstrip()), style=style, soft_wrap=True)

    def _print_list(self, cells: Sequence[str], style: str, out: Console) -> None:
        margin = _margin(cells[0])
        print_text(out, cells[0].lstrip(), indent=margin, style=style)
        headed = zip(self._columns[1:], cells[1:], strict=False)
        values = ", ".join(f"{column.heading} {cell}" for column, cell in headed if cell)
        if values:
            print_text(out, values, indent=margin + len(_GAP), style=style)


def _margin(cell: str) -> int:
    return len(cell) - len(cell.lstrip())
