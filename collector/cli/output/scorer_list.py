"""Prints the output of `pathgauge scorers` on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from pathgauge.collector.cli.output.scorer_catalogue import CatalogueEntry, Option


def print_catalogue(entries: Iterable[CatalogueEntry], out: Console) -> None:
    """Print one paragraph for each scorer, which fits any width: name, range, meaning, options."""
    for entry in entries:
        out.print(Text.assemble((entry.name, "bold"), f"  {_range(entry)}"))
        out.print(Padding(Text(entry.summary), (0, 0, 0, 2), expand=False))
        for option in entry.options:
            out.print(Padding(Text(_option(option)), (0, 0, 0, 4), expand=False))
            out.print(Padding(Text(option.text), (0, 0, 0, 8), expand=False), style="dim")
        out.print()


def _range(entry: CatalogueEntry) -> str:
    properties = [f"{entry.low:g} to {entry.high:g}"]
    if math.isinf(entry.high):
        properties = [f"from {entry.low:g}"]
    properties.append("higher is better" if entry.higher_is_better else "lower is better")
    if entry.needs_reference:
        properties.append("needs a reference")
    return ", ".join(properties)


def _option(option: Option) -> str:
    if option.required:
        return f"{option.name}: {option.type} (required)"
    default = str(option.default)
    if isinstance(option.default, bool):
        default = default.lower()
    return f"{option.name}: {option.type} = {default}"
