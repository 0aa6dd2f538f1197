"""The text of a failed assertion: why the gate does not pass, then the details of each invocation
that failed, as `pathgauge score --failed` prints them.

Telemetry may hold megabytes, and pytest prints the text several times. So it is bounded.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.console import Console

from pathgauge.collector.cli.output.details import LEGEND, Sourced, print_details
from pathgauge.collector.cli.output.printing import clean
from pathgauge.scorers.matching.wording import counted

WIDTH = 112
"""Columns. pytest puts eight in front, and breaks no lines."""
MAX_INVOCATIONS = 10
MAX_LINES = 50
"""Reasons and notes, each."""
MAX_LINE = 1_000
MAX_TEXT = 50_000
"""Characters. The rest is left out, and the text says so."""


def failure_text(reasons: Iterable[str], notes: Iterable[str], failed: Sequence[Sourced]) -> str:
    """The message of an `AssertionError`."""
    lines = [
        "the invocations do not pass",
        *_some(reasons, "- "),
        *_some(notes, "note: "),
        "",
        *_details(failed),
    ]
    text = "\n".join(map(_bounded, lines)).rstrip()
    if len(text) > MAX_TEXT:
        return f"{text[:MAX_TEXT]}…\n… and {counted(len(text) - MAX_TEXT, 'more character')}"
    return text


def _bounded(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


def _some(lines: Iterable[str], mark: str) -> list[str]:
    found = [f"{mark}{clean(line)}" for line in lines]
    if len(found) > MAX_LINES:
        found[MAX_LINES:] = [f"… and {counted(len(found) - MAX_LINES, 'more line')}"]
    return found


def _details(failed: Sequence[Sourced]) -> list[str]:
    """The lines about the first invocations. Rendering is slow for large ones, so it ends when
    there is enough text.
    """
    lines: list[str] = []
    shown, size, compares = 0, 0, False
    for one in failed[:MAX_INVOCATIONS]:
        if size > MAX_TEXT:
            break
        text = _rendered(one)
        compares = compares or text.endswith(LEGEND)
        lines += [*text.removesuffix(LEGEND).rstrip("\n").splitlines(), ""]
        shown, size = shown + 1, size + len(text)
    if compares:
        lines += [LEGEND, ""]
    if shown < len(failed):
        lines.append(f"… and {counted(len(failed) - shown, 'more invocation')}")
    return lines


def _rendered(one: Sourced) -> str:
    """The text as on a terminal without colours, because a pipe would get no columns."""
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, color_system=None, width=WIDTH, height=MAX_LINES
    )
    print_details([one], console)
    return out.getvalue().rstrip("\n")
