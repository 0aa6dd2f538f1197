"""Where the answers come from: the store, and the state of the running collector."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pathgauge.collector.api.models import Telemetry
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.core.sessions.session import SessionBounds
from pathgauge.collector.core.traffic.drift import TrafficStatus
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.collector.store.queries.reading import Reading, reading as read_folder
from pathgauge.scorers.types import Reference


@dataclass(frozen=True, slots=True)
class Sources:
    """Each is called in the thread of the queries."""

    folder: Path | None
    """The folder of the store; `None` with `store: memory`, or with results in PostgreSQL."""
    scores: Callable[[], Sequence[CurrentScore]]
    unknown: Callable[[], tuple[Sequence[UnknownScenario], int]]
    """Scenario ids without a reference, and the number of invocations with further ids."""
    references: Callable[[], Iterable[Reference]]
    telemetry: Callable[[], Telemetry]
    is_busy: Callable[[], bool] = lambda: False
    """Whether requests wait to be scored."""
    database: Reading | None = None
    """Opens the results in PostgreSQL."""
    evaluator: Callable[[], Evaluator] = lambda: Evaluator(())
    """The active criteria."""
    drifts: Callable[[], Sequence[Explained]] = tuple
    """What is known about each stream of scores."""
    traffic: Callable[[], Sequence[TrafficStatus]] = tuple
    """What is known about the tool calls of each agent, without references."""
    is_standby: Callable[[], bool] = lambda: False
    """Whether another process of the cluster is the gauge: scores, unknown ids, drifts and traffic
    are empty then, and the telemetry is that of this process.
    """

    conversation_ids: Callable[[str, str | None], Collection[str]] = lambda name, tenant: (name,)
    """The ids under which a conversation of a tenant (`None`: of any) may be stored: that by which
    people know it, and what redaction makes of that.
    """
    verdict_rules: VerdictRules = field(default_factory=VerdictRules)
    """What the answers of people mean."""
    session_bounds: SessionBounds = field(default_factory=SessionBounds)
    """By which answers about conversations find their session."""
    feedback_window: float = 7 * 86_400.0
    """The seconds in which criteria are compared with people."""

    @property
    def reading(self) -> Reading | None:
        """Opens the results for one query; `None` if none are kept."""
        if self.folder is None:
            return self.database
        return partial(read_folder, self.folder)
