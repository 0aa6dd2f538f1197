"""Passes first evaluations to the drift detection without references, and its state to the store.

The state of an agent has 20 to 300 KB, too much for each commit. So it is stored `STORE_S` after it
changed, together with everything that changed until then, and when the process stops. What a crash
loses is left out of the evidence, never counted twice: the state is stored in the transaction of
the results that it includes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pathgauge.collector.core.counters import Counter
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.label_values import label_value
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traffic.counted import counts, tool_names
from pathgauge.collector.core.traffic.drift import AgentKey, TrafficDrift, TrafficStatus
from pathgauge.collector.sinks.prometheus.labels import OTHER
from pathgauge.scorers.types import Json

NAME: Final = "traffic"
"""First part of the keys of stored states."""
STORE_S: Final = 300.0
"""A crash loses the evidence of at most so many seconds."""
MAX_ROWS: Final = 5
"""Of one commit. The others wait for the next ones."""


def states_of(rows: Iterable[Row]) -> Iterator[tuple[AgentKey, Mapping[str, Json]]]:
    """The stored states, by agent; other rows are ignored."""
    for (name, *key), state in rows:
        if name == NAME and state:
            yield AgentKey(*key), state[0]


class TrafficRecording:
    """The traffic of all agents of one sink. Only one thread at a time may call its methods. Times
    are Unix seconds.
    """

    def __init__(self, overflow: Counter) -> None:
        """`overflow` counts the invocations of agents for which there is no room."""
        overflow.add(NAME, n=0)
        self._overflow = overflow
        self._drift: TrafficDrift | None = None
        self._due: OrderedDict[AgentKey, float] = OrderedDict()
        """When to store the agents that changed, the first one first."""
        self._finishing = False

    def configure(self, limit_days: float | None, max_agents: int) -> None:
        """Apply other limits; without `limit_days` nothing is detected."""
        if limit_days is None:
            self._drift = None
            self._due.clear()
        elif self._drift is None:
            self._drift = TrafficDrift(max_agents, limit_days)
        else:
            self._drift.configure(max_agents, limit_days)
            self._delete_forgotten(self._drift)

    def record(
        self, evaluation: Evaluation, series: Series, version: str | None, now: float
    ) -> None:
        """Add an invocation. Its revisions and its withdrawal must not be passed. Invocations of
        agents that have no room of their own are several agents, so they are ignored.
        """
        if self._drift is None or series.agent == OTHER or not counts(evaluation):
            return
        key = AgentKey(series.tenant, series.agent)
        names = [label_value(name) for name in tool_names(evaluation.invocation)]
        before = self._drift.dropped
        self._drift.observe(*key, version, names, now)
        if self._drift.dropped > before:
            self._overflow.add(NAME)
            return
        self._delete_forgotten(self._drift)
        self._due.setdefault(key, now + STORE_S)

    def snapshot(self, now: float) -> Sequence[TrafficStatus]:
        """What is known about each stream of invocations."""
        return () if self._drift is None else self._drift.snapshot(now)

    def finish(self) -> None:
        """Have the next commits store all that changed, as the process stops; for any thread."""
        self._finishing = True

    def has_pending(self, now: float) -> bool:
        """Whether a state should be stored now."""
        due = next(iter(self._due.values()), None)
        # After a step of the clock back, the time may be far away.
        return due is not None and (self._finishing or not now < due <= now + STORE_S)

    def pending(self, now: float) -> list[Row]:
        """States to store now."""
        rows: list[Row] = []
        while self._drift is not None and len(rows) < MAX_ROWS and self.has_pending(now):
            key, _ = self._due.popitem(last=False)
            state = self._drift.state(key)
            rows.append(Row((NAME, *key), None if state is None else [state]))
        return rows

    def restore(self, rows: Iterable[Row], has_series: Callable[[str], bool]) -> None:
        """Continue with the latest stored states, without those of tenants for which `has_series`
        returns false.
        """
        if self._drift is not None:
            self._drift.restore(states_of(rows))
            self._drift.forget(lambda key: not has_series(key.tenant))
            self._delete_forgotten(self._drift)

    def _delete_forgotten(self, drift: TrafficDrift) -> None:
        for key in drift.forgotten:
            self._due[key] = 0.0
            self._due.move_to_end(key, last=False)
        drift.forgotten.clear()
