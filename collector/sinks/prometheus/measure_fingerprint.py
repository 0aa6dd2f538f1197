"""Identifies what the scores of a criterion are measured with."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Mapping

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.references import versions
from pathgauge.scorers.types import Json, Reference


def measure_fingerprint(criterion: Criterion, reference: Reference | None) -> float:
    """A number that changes with everything that the scores depend on. Thresholds are not part of
    it.
    """
    scorer = criterion.scorer
    turns = ""
    if reference is not None and scorer.needs_reference:
        turns = versions.version(dataclasses.replace(reference, criteria={}))
    measure = [scorer.name, scorer.version, _as_json(scorer), turns]
    if criterion.judge:
        measure.append(criterion.judge)
    text = json.dumps(measure, sort_keys=True)
    return float(zlib.crc32(text.encode("utf-8", "surrogatepass")))


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
