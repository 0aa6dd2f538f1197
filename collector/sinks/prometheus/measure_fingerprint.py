"""Identifies what the scores of a criterion are measured with."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Mapping

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.references import versions
from pathgauge.scorers.types import Json, Reference, ReferenceTurn


def measure_fingerprint(criterion: Criterion, reference: Reference | None) -> float:
    """A number that changes with everything that the scores depend on. Thresholds are not part of
    it, and neither is the text of the input: with another one, expectations are the same.
    """
    scorer = criterion.scorer
    turns = ""
    if reference is not None and scorer.needs_reference:
        expected = tuple(_expected(turn, judged=bool(criterion.judge)) for turn in reference.turns)
        turns = versions.version(dataclasses.replace(reference, criteria={}, turns=expected))
    measure = [scorer.name, scorer.version, _as_json(scorer), turns]
    if criterion.judge:
        measure.append(criterion.judge)
    text = json.dumps(measure, sort_keys=True)
    return float(zlib.crc32(text.encode("utf-8", "surrogatepass")))


def _expected(turn: ReferenceTurn, *, judged: bool) -> ReferenceTurn:
    """What scores depend on; only judges read rubrics."""
    return dataclasses.replace(
        turn,
        user_input=None,
        rubrics=turn.rubrics if judged else (),
        agents={name: _expected(one, judged=judged) for name, one in turn.agents.items()},
    )


def _as_json(value: object) -> Json:
    """An option as JSON that is equal in every process; an unknown object as its type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    fields = getattr(value, "__dataclass_fields__", {})
    options = {name: _as_json(getattr(value, name, None)) for name in fields}
    return {"\0type": type(value).__qualname__, **options}
