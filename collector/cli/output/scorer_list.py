"""Prints the output of `pathgauge scorers`. In a pipe each text is one line, so that `grep` finds
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from pathgauge.collector.cli.output.printing import print_text
from pathgauge.collector.cli.output.scorer_catalogue import CatalogueEntry, Option


def print_catalogue(entries: Iterable[CatalogueEntry], out: Console) -> None:
    """Print one paragraph for each scorer, which fits any width: name, range, meaning, options."""
    for entry in entries:
        out.print(Text.assemble((entry.name, "bold"), f"  {_range(entry)}"), soft_wrap=True)
        print_text(out, entry.summary, indent=2)
        for option in entry.options:
            print_text(out, _option(option), indent=4)
            print_text(out, option.text, indent=8, style="dim")
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
