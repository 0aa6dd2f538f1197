"""How long work reports where it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called by any thread while work goes on."""

    def __call__(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """`stage` says what is done now; `total`: the number of steps, `None` if not known."""
        ...


def unreported(stage: str, done: int = 0, total: int | None = None) -> None:
    """A `Progress` that nobody sees."""
