"""The labelled examples that come with judges, for a first check without a file.

Each set is small and general: it finds a judge that does not work at all with its model. Examples
from one's own traffic find out whether a judge works there.
"""

from __future__ import annotations

from importlib.resources import as_file, files

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.offline.judge_check.examples import Example, read

_SETS = files("pathgauge.scorers.judges") / "labelled"


def shipped(criterion: Criterion) -> tuple[Example, ...]:
    """The examples for the scorer of a criterion; none if it has no set."""
    found = _SETS / f"{criterion.scorer.name}.yaml"
    if not found.is_file():
        return ()
    with as_file(found) as file:
        return read(file)
