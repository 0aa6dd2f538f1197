"""Identifies what the scores of a criterion are measured with."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Mapping
from functools import cache

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.references import versions
from pathgauge.scorers.types import Json, Reference, ReferenceTurn


class MeasureFingerprints:
    """The fingerprints of all criteria of one scenario, which share what they compare with."""

    def __init__(self, reference: Reference | None) -> None:
        self._reference = reference
        self._expected = cache(self._version_expected)

    def of(self, criterion: Criterion) -> float:
        """A number that changes with everything that the scores depend on. Thresholds are not part
        of it, and neither is the text of the input: with another one, expectations are the same.
        """
        scorer = criterion.scorer
        turns = self._expected(judged=bool(criterion.judge)) if scorer.needs_reference else ""
        measure = [scorer.name, scorer.version, _as_json(scorer), turns]
        if criterion.judge:
            measure.append(criterion.judge)
        text = json.dumps(measure, sort_keys=True)
        return float(zlib.crc32(text.encode("utf-8", "surrogatepass")))

    def _version_expected(self, *, judged: bool) -> str:
        if self._reference is None:
            return ""
        turns = tuple(_expected(turn, judged=judged) for turn in self._reference.turns)
        return versions.version(dataclasses.replace(self._reference, criteria={}, turns=turns))


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
