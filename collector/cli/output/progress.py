"""Shows the progress of long work on standard error, if that is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeElapsedColumn

from pathgauge.collector.cli.output.printing import clean
from pathgauge.collector.offline.progress import Progress, unreported


@contextmanager
def shown_progress(err: Console) -> Iterator[Progress]:
    """A line with the stage, a bar and the time, which disappears at the end."""
    if not err.is_terminal:
        yield unreported
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Bar(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(stage: str, done: int = 0, total: int | None = None) -> None:
            if total == 1:  # tells nothing about how long it takes
                total = None
            counted = f"{stage}, {done} of {total}" if total else stage
            bar.update(task, description=escape(clean(counted)), completed=done, total=total)

        yield report
