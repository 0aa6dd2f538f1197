"""Where the answers come from: the store, and the state of the running collector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathgauge.collector.api.models import Telemetry
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.scorers.types import Reference


@dataclass(frozen=True, slots=True)
class Sources:
    """Each is called in the thread of the queries."""

    folder: Path | None
    """The folder of the store; `None` with `store: memory`."""
    scores: Callable[[], Sequence[CurrentScore]]
    unknown: Callable[[], tuple[Sequence[UnknownScenario], int]]
    """Scenario ids without a reference, and the number of invocations with further ids."""
    references: Callable[[], Iterable[Reference]]
    telemetry: Callable[[], Telemetry]
    is_busy: Callable[[], bool] = lambda: False
    """Whether requests wait to be scored."""
