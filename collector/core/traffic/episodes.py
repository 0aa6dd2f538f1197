"""An episode of divergence: from the alarm until the traffic is usual again, or was accepted.

Recovery is tested with a likelihood ratio on the event that raised the alarm: its limit against
halfway to its share since the change (of which the lower limit is taken, as the moment of the alarm
favours large shares). While the share is at least halfway, 1000 invocations pass on average before
it is wrongly called recovered, so that one incident remains one episode.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from pathgauge.collector.core.traffic.baseline import lower_limit
from pathgauge.collector.core.traffic.changes import Change

Outcome = Literal["recovered", "accepted", "superseded"]

_RECOVERED = 1000.0


@dataclass(frozen=True, slots=True)
class Episode:
    """Traffic that differs from the baseline, as reported."""

    opened: float
    """When the evidence sufficed, in Unix seconds."""
    since: float
    """When the change probably began."""
    invocations: int
    """Invocations since then."""
    evidence_days: float
    """When it opened."""
    changes: tuple[Change, ...]
    """What changed most, at most ten."""
    ended: float | None = None
    outcome: Outcome | None = None
    """`None` while it lasts. `accepted`: it lasted so long that it is the new baseline.
    `superseded`: the version has made way for newer ones.
    """


@dataclass(slots=True)
class OpenEpisode:
    """What an episode needs while it lasts."""

    opened: float
    since: float
    invocations: int
    evidence_days: float
    key: str
    """The event that raised the alarm."""
    limit: float
    happened: int
    counted: int
    """Invocations since the change, with the event and in all, until some speak for recovery."""
    recovery: float = 1.0

    def has_recovered(self, happened: bool) -> bool:
        """Add an invocation; true if the traffic is usual again."""
        self.invocations += 1
        if self.recovery <= 1:
            self.counted += 1
            self.happened += happened
        halfway = self._halfway()
        if happened:
            factor = self.limit / halfway
        else:
            factor = (1 - self.limit) / (1 - halfway)
        self.recovery = max(self.recovery, 1.0) * factor
        return self.recovery >= _RECOVERED

    def _halfway(self) -> float:
        share = lower_limit(self.happened / self.counted, self.counted)
        return self.limit + max(0.5 * (share - self.limit), 0.2 * self.limit * (1 - self.limit))

    def report(
        self,
        changes: tuple[Change, ...],
        ended: float | None = None,
        outcome: Outcome | None = None,
    ) -> Episode:
        """The episode as reported."""
        return Episode(
            self.opened, self.since, self.invocations, self.evidence_days, changes, ended, outcome
        )

    def state(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        return asdict(self)
