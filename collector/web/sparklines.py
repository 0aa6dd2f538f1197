"""Small lines of recent scores, as the coordinates of an SVG path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pathgauge.collector.api.models import Score, VersionScore

WIDTH, HEIGHT = 120, 28
_MARGIN = 3
_MAX_MARKS = 3


@dataclass(frozen=True, slots=True)
class VersionMark:
    """Where the scores of a version begin."""

    x: int
    version: str


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A line with its threshold."""

    path: str
    end: tuple[int, int]
    """The newest point."""
    threshold: int | None
    """Its height."""
    marks: tuple[VersionMark, ...]


def sparkline(score: Score, versions: Iterable[VersionScore]) -> Sparkline:
    """The line of one criterion. `versions` are the recent scores of each version."""
    values = score.recent
    known = values if score.threshold is None else [*values, score.threshold]
    low, high = min(known, default=0.0), max(known, default=1.0)
    points = [
        (_across(index, len(values)), _height(value, low, high))
        for index, value in enumerate(values)
    ]
    if len(points) == 1:
        points = [(_MARGIN, points[0][1]), *points]
    return Sparkline(
        "M" + "L".join(f"{x} {y}" for x, y in points) if points else "",
        points[-1] if points else (0, 0),
        None if score.threshold is None else _height(score.threshold, low, high),
        tuple(_marks(score, versions)),
    )


def _marks(score: Score, versions: Iterable[VersionScore]) -> list[VersionMark]:
    """The first run of each version but the oldest. The windows count the runs of each version, so
    marks are exact if versions follow each other, and near if they run side by side.
    """
    newest_first = sorted(
        (one for one in versions if one.criterion == score.criterion),
        key=lambda one: one.last,
        reverse=True,
    )
    found: list[VersionMark] = []
    runs = 0
    for one in newest_first[:_MAX_MARKS]:
        runs += one.samples
        if runs >= score.samples:
            break
        share = (score.samples - runs) / score.samples
        found.append(VersionMark(_place(share), one.version))
    return found


def _across(index: int, count: int) -> int:
    return _place(index / (count - 1) if count > 1 else 1.0)


def _place(share: float) -> int:
    return round(_MARGIN + share * (WIDTH - 2 * _MARGIN))


def _height(value: float, low: float, high: float) -> int:
    share = (value - low) / (high - low) if high > low else 0.5
    return round(HEIGHT - _MARGIN - share * (HEIGHT - 2 * _MARGIN))
