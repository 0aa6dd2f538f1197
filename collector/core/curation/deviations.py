"""Finds the values of an argument that few runs have, as candidates to be set aside."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from pathgauge.collector.core.curation.minority import Cut, bound, rare
from pathgauge.collector.core.curation.texts import forms, traits
from pathgauge.collector.core.curation.values import MAX_CHOICES, MAX_NUMBER, type_of
from pathgauge.scorers.matching.equality import canonical
from pathgauge.scorers.matching.wording import counted, short
from pathgauge.scorers.types import Json

Values: TypeAlias = Mapping[int, Json]
"""A value of each run."""
_Key = TypeVar("_Key", bound=Hashable)

_SHRINKS_TO = 1 / 5
"""Numbers are outliers if the range without them is so much smaller."""
_GAIN = 0.05
"""What one more outlier has to add to that, as a logarithm: ten times a uniform distribution's."""


def cuts(values: Values, where: str, share: float) -> Iterator[Cut]:
    """Runs whose value deviates from those of most runs. `where` names the value."""
    types = _grouped(values, type_of)
    unusual = set(rare(types, share))
    for kind in unusual:
        yield Cut(frozenset(types[kind]), f"{where} is {kind}")
    for kind, runs in types.items():
        if kind not in unusual:
            yield from _of_type(kind, {run: values[run] for run in sorted(runs)}, where, share)


def _of_type(kind: str, values: Values, where: str, share: float) -> Iterator[Cut]:
    if kind == "an object":
        yield from _of_objects(values, where, share)
        return
    same = _grouped(values, canonical)
    unusual = list(rare(same, share))
    if unusual and len(same) - len(unusual) <= MAX_CHOICES:
        for value in unusual:
            example = short(values[min(same[value])])
            yield Cut(frozenset(same[value]), f"{where} is {example}")
    elif kind == "a number":
        yield from _of_numbers(values, where, share)
    elif kind == "text":
        yield from _of_texts(values, where, share)
    elif kind == "a list":
        lengths = _grouped(values, len)
        for length in rare(lengths, share):
            yield Cut(frozenset(lengths[length]), f"{where} has {counted(length, 'item')}")


def _of_objects(values: Values, where: str, share: float) -> Iterator[Cut]:
    names = sorted({name for value in values.values() for name in value})
    for name in names:
        having = {run: value[name] for run, value in values.items() if name in value}
        lacking = values.keys() - having.keys()
        path = f"{where}.{name}" if where else name
        for verb in rare({"has no": lacking, "has": having.keys()}, share):
            runs = lacking if verb == "has no" else having.keys()
            yield Cut(frozenset(runs), f"{verb} {path}")
        yield from cuts(having, path, share)


def _of_texts(values: Values, where: str, share: float) -> Iterator[Cut]:
    runs = list(values)
    by_form: dict[str, list[int]] = defaultdict(list)
    for run, form in zip(runs, forms(list(values.values())), strict=True):
        by_form[form].append(run)
    unusual = set(rare(by_form, share))
    for form in unusual:
        example = short(values[by_form[form][0]])
        yield Cut(frozenset(by_form[form]), f"{where} is {example}")
    for form, having in by_form.items():
        if form in unusual:
            continue
        for column in traits(form, [values[run] for run in having]):
            alike = _grouped(dict(zip(having, column, strict=True)), str)
            for trait in rare(alike, share):
                example = short(values[min(alike[trait])])
                if trait:
                    yield Cut(frozenset(alike[trait]), f"{where} is {example}")


def _of_numbers(values: Values, where: str, share: float) -> Iterator[Cut]:
    signs = _grouped(values, _sign)
    unusual = set(rare(signs, share))
    for sign in unusual:
        yield Cut(frozenset(signs[sign]), f"{where} is {sign}")
    usual = {run: value for run, value in values.items() if _sign(value) not in unusual}
    ordered = sorted(usual, key=lambda run: (usual[run], run))
    low, high = _bulk([_as_float(usual[run]) for run in ordered], bound(len(values), share))
    outliers = [*ordered[:low], *ordered[high:]]
    for run in outliers:
        yield Cut(frozenset([run]), f"{where} is {short(usual[run])}")


def _bulk(ordered: Sequence[float], most: int) -> tuple[int, int]:
    """The slice without outliers: at most `most` of the lowest and highest numbers."""
    whole = (0, len(ordered))
    if len(ordered) <= most + 1:
        return whole
    spread = ordered[-1] - ordered[0]
    best, chosen = 0.0, whole
    for low in range(most + 1):
        for high in range(len(ordered) - most + low, len(ordered) + 1):
            left = ordered[high - 1] - ordered[low]
            if not 0 < left < spread * _SHRINKS_TO:
                continue
            gain = math.log(spread / left) - _GAIN * (low + len(ordered) - high)
            if gain > best:
                best, chosen = gain, (low, high)
    return chosen


def _as_float(number: float) -> float:
    """A whole number may be too large for a `float`, and differences of floats, too."""
    return float(max(-MAX_NUMBER, min(MAX_NUMBER, number)))


def _sign(value: float) -> str:
    if value == 0:
        return "zero"
    return "negative" if value < 0 else "positive"


def _grouped(values: Values, key: Callable[[Json], _Key]) -> dict[_Key, set[int]]:
    groups: dict[_Key, set[int]] = defaultdict(set)
    for run, value in values.items():
        groups[key(value)].add(run)
    return groups
