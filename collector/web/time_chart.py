"""A chart of scores over time with its confidence band, as SVG coordinates and as numbers for the
script that makes it interactive.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pathgauge.collector.api.history import Line, VersionVerdicts
from pathgauge.collector.web.display import number

WIDTH, HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 12, 26
_MAX_MARKS = 8
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis, or of a version."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The chart of one criterion."""

    line: Line
    path: str
    band: str
    dots: tuple[tuple[float, float], ...]
    threshold: float | None
    heights: tuple[Tick, ...]
    times: tuple[Tick, ...]
    versions: tuple[Tick, ...]
    data: str
    """JSON for the script."""


def chart(line: Line, versions: Sequence[VersionVerdicts]) -> Chart:
    """The chart of a line with at least one point. `versions` are in the order of time."""
    start, end = line.points[0].at, line.points[-1].at
    low, high = _range(line)

    def across(at: float) -> float:
        share = (at - start) / (end - start) if end > start else 0.5
        return round(_LEFT + min(1.0, max(0.0, share)) * (WIDTH - _LEFT - _RIGHT), 1)

    def height(value: float) -> float:
        share = (value - low) / (high - low)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    dots = [(across(point.at), height(point.mean)) for point in line.points]
    upper = [(across(point.at), height(point.high)) for point in line.points]
    lower = [(across(point.at), height(point.low)) for point in line.points]
    return Chart(
        line,
        _path(dots),
        _path([*upper, *reversed(lower)]) + "Z",
        tuple(dots),
        None if line.threshold is None else height(line.threshold),
        tuple(Tick(height(value), number(value)) for value in (low, (low + high) / 2, high)),
        tuple(
            Tick(across(at), _time(at, end - start))
            for at in ((start,) if end <= start else (start, (start + end) / 2, end))
        ),
        tuple(Tick(across(at), name) for at, name in changes(versions)),
        _data(line, versions),
    )


def changes(versions: Iterable[VersionVerdicts]) -> list[tuple[float, str]]:
    """When each version but the oldest appeared, the newest ones."""
    found = [(one.first_at, one.version or "no version") for one in versions]
    return found[1:][-_MAX_MARKS:]


def _range(line: Line) -> tuple[float, float]:
    if line.bounds is not None and line.bounds[1] > line.bounds[0]:
        return line.bounds
    values = [value for point in line.points for value in (point.low, point.high)]
    if line.threshold is not None:
        values.append(line.threshold)
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    begins_at_zero = low == 0 or 0 < low < high / 2
    return (0.0 if begins_at_zero else low - margin), high + margin


def _data(line: Line, versions: Sequence[VersionVerdicts]) -> str:
    columns = [
        [round(point.at, 3) for point in line.points],
        *(
            [_finite(getattr(point, name)) for point in line.points]
            for name in ("mean", "low", "high")
        ),
    ]
    return json.dumps(
        {
            "columns": columns,
            "samples": [point.samples for point in line.points],
            "threshold": _finite(line.threshold),
            "range": list(_range(line)),
            "versions": [[round(at, 3), name] for at, name in changes(versions)],
            "name": line.criterion,
        }
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _time(at: float, width: float) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    return f"{moment:%m-%d %H:%M}" if width >= _DAY else f"{moment:%H:%M:%S}"
