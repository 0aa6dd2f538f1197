"""The criteria and references that the events of one publication name by number.

The gauge has criteria and references too, but a reload may not have reached it and the scorer at
the same time. What it does not have is replaced by a stand-in with the same properties.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.store.publications.stand_ins import (
    criterion_of,
    described,
    described_reference,
    reference_of,
)
from pathgauge.scorers.types import Json, Reference


class Tables:
    """What the events written so far refer to. The events must outlive it, because criteria and
    references are told apart by their identity: not all can be hashed.
    """

    def __init__(self) -> None:
        self._criteria: dict[int, int] = {}
        self._references: dict[int, int] = {}
        self._criterion_rows: list[str] = []
        self._reference_rows: list[str] = []

    def criterion(self, criterion: Criterion) -> int:
        """The number of a criterion."""
        number = self._criteria.get(id(criterion))
        if number is None:
            self._criterion_rows.append(_text(described(criterion)))
            number = self._criteria[id(criterion)] = len(self._criterion_rows) - 1
        return number

    def reference(self, reference: Reference) -> int:
        """The number of a reference."""
        number = self._references.get(id(reference))
        if number is None:
            self._reference_rows.append(_text(described_reference(reference)))
            number = self._references[id(reference)] = len(self._reference_rows) - 1
        return number

    def to_json(self) -> bytes:
        """Both tables on one line, which only `json` can read: upper bounds may be infinite."""
        criteria, references = ",".join(self._criterion_rows), ",".join(self._reference_rows)
        return f"[[{criteria}],[{references}]]".encode()


class Resolver:
    """The criteria and references behind the numbers."""

    def __init__(self, tables: bytes, evaluator: Evaluator, references: ReferenceSet) -> None:
        """Raises `ValueError` if `tables` is not what `Tables.to_json` returns."""
        self._criterion_rows, reference_rows = json.loads(tables)
        self._evaluator = evaluator
        self._references = [_active_or_stand_in(row, references) for row in reference_rows]
        self._criteria: dict[tuple[int, int | None], Criterion] = {}
        self._active: dict[int | None, Mapping[str, Criterion]] = {}

    def reference(self, number: int) -> Reference:
        """The reference with this number."""
        return self._references[number]

    def criterion(self, number: int, reference: int | None) -> Criterion:
        """The criterion with this number in an event with this reference, which may override global
        criteria.
        """
        found = self._criteria.get((number, reference))
        if found is None:
            row = self._criterion_rows[number]
            active = self._active_for(reference).get(row[0])
            is_active = active is not None and described(active) == row
            found = active if active is not None and is_active else criterion_of(_text(row))
            self._criteria[number, reference] = found
        return found

    def _active_for(self, reference: int | None) -> Mapping[str, Criterion]:
        active = self._active.get(reference)
        if active is None:
            match = Match(None if reference is None else self._references[reference])
            scenario_id = None if match.reference is None else match.reference.scenario_id
            criteria = self._evaluator.criteria_of(match, scenario_id)
            active = self._active[reference] = {one.name: one for one in criteria}
        return active


def _active_or_stand_in(row: list[Json], references: ReferenceSet) -> Reference:
    active = references.get(row[0])
    if active is not None and described_reference(active) == row:
        return active
    return reference_of(_text(row))


def _text(row: Any) -> str:
    return json.dumps(row, default=float)
