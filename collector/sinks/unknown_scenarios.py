"""Reports scenario ids in the traffic that have no reference, with the known ids most like them.

Each id is logged once, and again if it was not sent between two reloads. Counts are kept for the
first `MAX_SCENARIOS` ids.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import structlog

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.references.closest_ids import ClosestIds

_log = structlog.get_logger(__name__)

MAX_SCENARIOS = 1_000
_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class UnknownScenario:
    """A scenario id without reference."""

    tenant: str
    scenario: str
    """The id, at most 200 characters of it."""
    closest: tuple[str, ...]
    """The known ids most like it, the most similar first."""
    invocations: int
    """How many invocations had this id since the start or the last reload."""


class UnknownScenarios:
    """A sink that counts them. Other threads may call `snapshot`."""

    def __init__(self, references: ReferenceSet) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], UnknownScenario] = {}
        self._unlisted = 0
        self._known = ClosestIds(())
        self.configure(references)

    def configure(self, references: ReferenceSet) -> None:
        """Apply other references. Ids that have none now either stay, with new counts, if they were
        sent since the references before: others would take their room for ever.
        """
        ids = {reference.scenario_id for reference in references}
        with self._lock:
            self._known = ClosestIds(ids)
            self._unlisted = 0
            self._found = {
                key: replace(one, closest=_of(one.closest, ids), invocations=0)
                for key, one in self._found.items()
                if one.scenario not in ids and one.invocations
            }

    def snapshot(self) -> tuple[list[UnknownScenario], int]:
        """The ids with the most invocations first, and the number of invocations with ids beyond
        `MAX_SCENARIOS`.
        """
        with self._lock:
            found, unlisted = list(self._found.values()), self._unlisted
        return sorted(found, key=lambda one: (-one.invocations, one.scenario)), unlisted

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Count an invocation with an unknown id."""
        scenario = evaluation.invocation.scenario_id
        if evaluation.match.unmatched != "unknown_scenario" or evaluation.revision or not scenario:
            return
        if evaluation.session is not None:  # its turns were counted
            return
        self._count(evaluation.invocation.tenant, scenario)

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Nothing: the evaluation was counted before."""

    def publish_conversation(self, result: ConversationResult, now: float) -> None:
        """Nothing: its turns were counted before."""

    def withdraw(self, key: EvaluationKey) -> None:
        """Nothing: the id was sent, and counts do not go back."""

    def close(self) -> None:
        """Nothing is held."""

    def _count(self, tenant: str, scenario: str) -> None:
        key = tenant, scenario[:_MAX_CHARS]
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found[key] = replace(found, invocations=found.invocations + 1)
                return
            if len(self._found) >= MAX_SCENARIOS:
                self._unlisted += 1
                return
            closest = self._known.of(scenario)
            self._found[key] = UnknownScenario(*key, closest, 1)
            has_references = bool(self._known)
        if has_references:
            known = {
                name: value for name, value in (("tenant", tenant), ("closest", closest)) if value
            }
            _log.warning("no reference has this scenario id", scenario=key[1], **known)


def _of(names: tuple[str, ...], ids: set[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in ids)
