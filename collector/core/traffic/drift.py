"""Finds agents whose behaviour changed, without references: from the names of their tool calls.

What an invocation does is described by events (`events.py`): tools, transitions between tools, the
path, and the number of calls. A baseline (`baseline.py`) bounds how often each event is usual, and
`evidence.py` collects evidence that one of the bounds no longer holds, in days. An episode opens at
365 days.

Why bounds of single events, and not the likelihood ratio of recent traffic against the learned
distribution: that ratio is only valid if the learned distribution is exact. It is not, since it was
learned from a sample and wanders with the hour. A bound can contain both, and then "every event
happens at most as often as its bound says" is all that the guarantee needs: neither independent
invocations, nor a distribution that stays the same, nor that the transitions of an invocation are
independent. The price is small: the weight of an event costs the logarithm of the number of events
once. And the event that exceeded its bound says what changed.

The guarantee: if no event's conditional probability exceeds its bound, an agent has on average at
most one false episode in 365 days, with all its versions. Bounds are estimates, so that this holds
as far as they do: a difference between hours that the baseline has not seen, such as the first
weekend, is a true divergence from what was learned.

What it does not see: arguments and results of calls, changes within the margins (see
`baseline.py`), and changes so slow that each week is within the bounds of the weeks before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from pathgauge.collector.core.traffic.agent import AgentTraffic
from pathgauge.collector.core.traffic.episodes import Episode
from pathgauge.collector.core.traffic.series import (
    ALARM_DAYS,
    DAY,
    LEARNING_INVOCATIONS,
    LEARNING_TIME,
    WEEK,
    Series,
)

_FORMAT = 1
IDLE: Final = 28 * DAY
"""An agent without invocations for so long gives way to another."""
_WATCHED_INVOCATIONS = 20
"""With fewer invocations in a week, even a large change takes weeks to be seen."""

Status = Literal["learning", "low_traffic", "watching", "diverging"]


class AgentKey(NamedTuple):
    """An agent of a tenant; `""`: the only tenant, or an agent without a name."""

    tenant: str
    agent: str


@dataclass(frozen=True, slots=True)
class TrafficStatus:
    """What is known about one stream of invocations."""

    tenant: str
    agent: str
    version: str | None
    """A version that is compared with the earlier traffic of the agent; `None`: the others."""
    status: Status
    """`low_traffic`: too few invocations to say anything, be it for learning or afterwards."""
    invocations: int
    """While learning: those so far. Afterwards: those of the last seven days, at most 512."""
    missing_invocations: int
    """While learning: how many are still needed. With low traffic after that: how many more would
    have been needed in the last seven days.
    """
    missing_hours: float
    """While learning: time that still has to pass."""
    evidence_days: float
    """An episode opens at the limit; its evidence stays as it was then."""
    baseline_invocations: int
    """Invocations that the baseline was learned from; older ones count less than once."""
    last: float
    """When the last invocation was observed, in Unix seconds."""
    episode: Episode | None


@dataclass(frozen=True, slots=True)
class EpisodeChange:
    """An episode that has opened, or ended if it has an `outcome`."""

    tenant: str
    agent: str
    version: str | None
    episode: Episode


class TrafficDrift:
    """The traffic of all agents. Not thread-safe. Times are Unix seconds; an earlier `now` is
    treated as the latest one of the agent, unless a clock that was ahead by more than a week is set
    back.
    """

    def __init__(self, max_agents: int = 500, alarm_days: float = ALARM_DAYS) -> None:
        """An episode opens at an evidence of `alarm_days`."""
        self._max_agents, self._alarm_days = max_agents, alarm_days
        self._agents: OrderedDict[AgentKey, AgentTraffic] = OrderedDict()
        """The one without invocations for the longest time is first."""
        self.dropped = 0
        """Invocations that were not observed, as there were too many agents."""
        self.forgotten: list[AgentKey] = []
        """Agents that made room for others, or are unwanted. Whoever stores states deletes theirs,
        and clears this.
        """

    def __len__(self) -> int:
        """Number of agents."""
        return len(self._agents)

    def configure(self, max_agents: int, alarm_days: float) -> None:
        """Apply other limits. Agents without room, idle ones first, are forgotten."""
        self._max_agents, self._alarm_days = max_agents, alarm_days
        while len(self._agents) > max_agents:
            self._forget_oldest()

    def observe(
        self, tenant: str, agent: str, version: str | None, tool_names: Sequence[str], now: float
    ) -> list[EpisodeChange]:
        """Add an invocation that called these tools in this order. The episodes that open or end
        by it.
        """
        key = AgentKey(tenant, agent)
        traffic = self._agents.get(key)
        if traffic is None:
            if not self._has_room(now):
                self.dropped += 1
                return []
            traffic = self._agents[key] = AgentTraffic(now)
        self._agents.move_to_end(key)
        if now < traffic.last - WEEK:
            traffic.set_back(now)
        found = traffic.observe(version, tool_names, max(now, traffic.last), self._alarm_days)
        return [EpisodeChange(*key, name, episode) for name, episode in found]

    def forget(self, unwanted: Callable[[AgentKey], bool]) -> None:
        """Forget the agents for whose key `unwanted` returns true."""
        for key in [key for key in self._agents if unwanted(key)]:
            del self._agents[key]
            self.forgotten.append(key)

    def snapshot(self, now: float) -> list[TrafficStatus]:
        """All streams, in no particular order."""
        return [
            _status(key, version, series, now)
            for key, traffic in self._agents.items()
            for version, series in traffic.streams()
        ]

    def state(self, key: AgentKey) -> dict[str, Any] | None:
        """All that is known about an agent, as JSON values; `None` for an unknown one."""
        traffic = self._agents.get(key)
        return None if traffic is None else {"format": _FORMAT, **traffic.state()}

    def restore(self, states: Iterable[tuple[AgentKey, Mapping[str, Any]]]) -> None:
        """Continue exactly from what `state` returned, in any order. An agent whose state has
        another format learns again.
        """
        restored = {
            key: AgentTraffic.restore(state)
            for key, state in states
            if state.get("format") == _FORMAT
        }
        self._agents = OrderedDict(sorted(restored.items(), key=lambda item: item[1].last))
        self.configure(self._max_agents, self._alarm_days)

    def _has_room(self, now: float) -> bool:
        if len(self._agents) < self._max_agents:
            return True
        traffic = next(iter(self._agents.values()), None)
        if traffic is None or now - traffic.last <= IDLE:
            return False
        self._forget_oldest()
        return True

    def _forget_oldest(self) -> None:
        key, _ = self._agents.popitem(last=False)
        self.forgotten.append(key)


def _status(key: AgentKey, version: str | None, series: Series, now: float) -> TrafficStatus:
    recent = series.recent.since(now - WEEK)
    status, missing_invocations, missing_hours = _progress(series, recent, now)
    return TrafficStatus(
        *key,
        version=version,
        status=status,
        invocations=recent if series.baseline else int(series.pending.total),
        missing_invocations=missing_invocations,
        missing_hours=missing_hours,
        evidence_days=series.evidence_days,
        baseline_invocations=int(series.baseline.counts.invocations) if series.baseline else 0,
        last=series.last,
        episode=series.report(),
    )


def _progress(series: Series, recent: int, now: float) -> tuple[Status, int, float]:
    """Status, and the invocations and hours that are missing. `recent`: invocations in the last
    seven days.
    """
    if series.baseline is None:
        pending = series.pending
        missing_invocations = max(0, LEARNING_INVOCATIONS - int(pending.total))
        missing_hours = max(0.0, LEARNING_TIME - (pending.ended - pending.started)) / 3600
        status: Status = "low_traffic" if now - pending.started >= WEEK else "learning"
        return status, missing_invocations, missing_hours
    if series.episode is not None:
        return "diverging", 0, 0.0
    missing_invocations = max(0, _WATCHED_INVOCATIONS - recent)
    if missing_invocations and now - series.started >= WEEK:
        return "low_traffic", missing_invocations, 0.0
    return "watching", 0, 0.0
