"""Writes the result of a gate as one HTML file, which needs no other file and no network.

Texts come from telemetry. The template escapes everything, and the page forbids scripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from pathgauge.collector.cli.output.details import LEGEND, failures, failures_first
from pathgauge.collector.cli.output.failing_runs import MAX_REASONS, RunView, runs, summary
from pathgauge.collector.cli.output.numbers import number
from pathgauge.collector.core.evidence.comparison import Mark, alignments
from pathgauge.collector.offline.gate import Gate
from pathgauge.collector.offline.replay import Replayed
from pathgauge.collector.web.calls import PairView, pair_view
from pathgauge.collector.web.wording import MARKS

MAX_RUNS = 500
"""Invocations on the page, failures first."""
MAX_CALLS = 200
"""Lines of one comparison."""
MAX_OPEN = 20
"""Invocations that are shown without a click."""
_CLASSES: dict[Mark, str] = {
    "=": "matched",
    "~": "different",
    "?": "unknown",
    "-": "missing",
    "+": "unexpected",
}


class _Comparison(NamedTuple):
    names: Sequence[str]
    pairs: Sequence[PairView]
    further: int
    """Lines that are not shown."""


def to_html(replayed: Sequence[Replayed], gate: Gate) -> bytes:
    """The page."""
    shown = failures_first(replayed, gate)
    failing = len(failures(replayed, gate))
    page = _template().render(
        gate=gate,
        summary=list(summary(gate)),
        runs=[(one, _comparisons(one)) for one in runs(islice(shown, MAX_RUNS))],
        failing=failing,
        total=len(shown),
        open=min(failing, MAX_OPEN),
        classes=_CLASSES,
        marks=MARKS,
        legend=LEGEND,
        max_reasons=MAX_REASONS,
    )
    return page.encode("utf-8", "replace")


def _comparisons(run: RunView) -> list[_Comparison]:
    return [
        _Comparison(names, [pair_view(one) for one in calls[:MAX_CALLS]], len(calls[MAX_CALLS:]))
        for names, calls in alignments(run.evidence)
    ]


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("pathgauge.collector.cli.output"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    return environment.get_template("report.html")
