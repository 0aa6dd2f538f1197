"""Builds evidence where the invocations have their content, for another process that stores it.

That process decides which evidence of passed runs it keeps. This one does not know what is kept, so
it builds some more, but not that of every run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Any

from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evidence.evidence import evidence_of
from pathgauge.collector.core.pipeline_events import Judged, PublishedEvent
from pathgauge.collector.store.evidence.bodies import EvidenceBodies
from pathgauge.collector.store.evidence.policy import EvidencePolicy, Passed, scenario_of
from pathgauge.collector.store.evidence.table import log_unstorable

MAX_REMEMBERED = 5_000
"""Scenarios, and passed runs. What is forgotten may be built once too often."""


class PreparedEvidence:
    """Evidence for `Progress.evidence`. Only one thread at a time may use it."""

    def __init__(self, policy: EvidencePolicy) -> None:
        self._policy = policy
        self._bodies = EvidenceBodies()
        self._passed: OrderedDict[tuple[str, str], Passed] = OrderedDict()
        """By tenant and scenario, how much evidence of passed runs was built."""
        self._built: OrderedDict[EvaluationKey, None] = OrderedDict()
        """The passed runs with evidence, whose revisions need new evidence."""

    def of(self, events: Iterable[PublishedEvent], wall: float) -> dict[int, bytes]:
        """The evidence by the index of its event: of failures, of the results of judges, and of
        some passed runs. `wall` is the Unix time.
        """
        if self._policy.keep == "none":
            return {}
        found: dict[int, bytes] = {}
        for index, event in enumerate(events):
            evaluation = self._wanted(event, wall)
            if evaluation is None:
                continue
            try:
                found[index] = self._bodies.packed(evidence_of(evaluation))
            except Exception:
                log_unstorable(evaluation)
        return found

    def _wanted(self, event: PublishedEvent, wall: float) -> Evaluation | None:
        if isinstance(event, Judged):
            return event.evaluation  # the stored evidence, if any, gets their results
        if not isinstance(event, Evaluation):
            return None
        is_kept = self._policy.keeps(event) or (
            event.match.turn is not None and self._is_chosen(event, wall)
        )
        return event if is_kept else None

    def _is_chosen(self, evaluation: Evaluation, wall: float) -> bool:
        """Whether evidence of a passed run is built."""
        scenario = (evaluation.invocation.tenant, scenario_of(evaluation))
        passed = self._passed.get(scenario, Passed(0, 0.0))
        if evaluation.key not in self._built:
            if not self._policy.wants(passed, wall):
                return False
            _remember(self._passed, scenario, Passed(passed.number + 1, wall))
        _remember(self._built, evaluation.key, None)
        return True


def _remember(remembered: OrderedDict[Any, Any], key: Hashable, value: object) -> None:
    remembered[key] = value
    remembered.move_to_end(key)
    if len(remembered) > MAX_REMEMBERED:
        remembered.popitem(last=False)
