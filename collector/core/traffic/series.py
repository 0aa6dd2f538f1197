"""One stream of invocations: learns what is usual, then watches, then reports episodes of
divergence.

Life of a baseline:

- It is learned from at least 200 invocations and 24 hours.
- Later invocations are collected separately. When they cover as much time as the baseline, or seven
  days, and are at least 200, they are merged into it; after a week, older invocations count half
  each time. So the baseline follows slow changes within weeks. Invocations wait while there is
  evidence that they differ, so that a change is not learned before it is seen.
- When an episode has lasted for seven days and 200 invocations, the invocations since the change
  are the new baseline. After a recovery they are forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pathgauge.collector.core.traffic.baseline import Baseline
from pathgauge.collector.core.traffic.changes import changes
from pathgauge.collector.core.traffic.counts import Counts
from pathgauge.collector.core.traffic.episodes import Episode, OpenEpisode, Outcome
from pathgauge.collector.core.traffic.events import events_of
from pathgauge.collector.core.traffic.evidence import Evidence, gain
from pathgauge.collector.core.traffic.recent import Events, Recent

DAY: Final = 86400.0
WEEK: Final = 7 * DAY

LEARNING_INVOCATIONS: Final = 200
LEARNING_TIME: Final = DAY
ALARM_DAYS: Final = 365.0
_SUSPICIOUS_DAYS = 3.0
_LONGEST_PAUSE = WEEK
"""Weight of an invocation in seconds, at most. A smaller weight errs on the safe side."""
_CACHE = 128
_CACHED_CHARACTERS = 20_000
"""Of the names in the cache."""
_ABANDONED_INVOCATIONS = 50
_ABANDONED_TIME = 28 * DAY


class Series:
    """The invocations of an agent, or of one version. Times are Unix seconds and never decrease."""

    def __init__(
        self, now: float, baseline: Baseline | None = None, *, on_trial: bool = False
    ) -> None:
        self.on_trial = on_trial
        """Whether the baseline is that of another stream, and stays as it is."""
        self.started = now
        self.last = now
        self.skipped = 0
        """Invocations of other streams since the last one of this."""
        self.episode: OpenEpisode | None = None
        self.recent = Recent()
        self.pending = Counts(now)
        self.baseline = baseline
        self._evidence = Evidence(baseline.bounds if baseline else ())
        self._cache: dict[tuple[str, ...], tuple[Events, tuple[int, ...]]] = {}
        """Events and bounds of invocations with the same calls."""
        self._cached = 0
        """Characters of these calls."""

    @property
    def evidence_days(self) -> float:
        """The evidence of divergence, also of an open episode."""
        return self.episode.evidence_days if self.episode else self._evidence.days

    def observe(
        self, tool_names: Sequence[str], now: float, weight: float, alarm_days: float = ALARM_DAYS
    ) -> Episode | None:
        """Add an invocation; the episode, if one opens or ends. `weight`: share of the time that
        counts. An episode opens at an evidence of `alarm_days`.
        """
        pause = min(now - self.last, _LONGEST_PAUSE)
        self.last, self.skipped = now, 0
        events, places = self._read(tuple(tool_names))
        self.recent.add(events, now)
        self.pending.add(events, now)
        if self.baseline is None:
            if self._has_learned():
                self.adopt(self.pending, now)
            return None
        if self.episode is not None:
            return self._continue(self.episode, events, now)
        if self._evidence.update(places, weight * pause / DAY) >= alarm_days:
            return self._open(self.baseline, now)
        if not self.on_trial:
            self._extend(self.baseline, now)
        return None

    def adopt(self, counts: Counts, now: float) -> None:
        """Make `counts` the baseline, and begin anew with the evidence."""
        self.baseline = Baseline(counts)
        self.restart(now)

    def report(self, ended: float | None = None, outcome: Outcome | None = None) -> Episode | None:
        """The open episode, with what changed until now."""
        if self.episode is None or self.baseline is None:
            return None
        found = changes(self.baseline.counts, self.pending)
        return self.episode.report(found, ended, outcome)

    def is_abandoned(self, now: float) -> bool:
        """Whether the traffic has moved to other streams, so that an episode cannot go on."""
        if self.episode is not None and self.skipped >= _ABANDONED_INVOCATIONS:
            return now - self.last > DAY
        return self.on_trial and now - self.last > _ABANDONED_TIME

    def has_lasted(self, now: float) -> bool:
        """Whether there is enough traffic since the baseline or the change for a new one."""
        begun = self.episode.opened if self.episode else self.pending.started
        return now - begun >= WEEK and self.pending.total >= LEARNING_INVOCATIONS

    @property
    def is_suspicious(self) -> bool:
        """Whether there is evidence that the traffic differs; it is not learned from then."""
        return self.evidence_days >= _SUSPICIOUS_DAYS

    def restart(self, now: float) -> None:
        """Forget the evidence, the episode and what was to be learned."""
        self.episode = None
        self.pending = Counts(now)
        self._evidence = Evidence(self.baseline.bounds if self.baseline else ())
        self._cache.clear()
        self._cached = 0

    def set_back(self, now: float) -> None:
        """Later times count as `now`."""
        self.started, self.last = min(self.started, now), min(self.last, now)
        self.recent.set_back(now)
        self.pending.set_back(now)
        if self.baseline is not None:
            self.baseline.counts.set_back(now)
        if self.episode is not None:
            self.episode.opened = min(self.episode.opened, now)
            self.episode.since = min(self.episode.since, now)

    def learn(self, counts: Counts, now: float) -> None:
        """Let invocations of another stream take part in the next baseline."""
        if self.baseline is not None and self.episode is None:
            self.pending.merge(counts)
            self._extend(self.baseline, now)

    def state(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        return {
            "on_trial": self.on_trial,
            "started": self.started,
            "last": self.last,
            "skipped": self.skipped,
            "baseline": self.baseline.counts.state() if self.baseline else None,
            "pending": self.pending.state(),
            "recent": self.recent.state(),
            "evidence": self._evidence.state(),
            "episode": self.episode.state() if self.episode else None,
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Series:
        """What `state` was made of."""
        known = state["baseline"]
        baseline = Baseline(Counts.restore(known)) if known else None
        series = cls(state["started"], baseline, on_trial=state["on_trial"])
        series.last, series.skipped = state["last"], state["skipped"]
        series.pending = Counts.restore(state["pending"])
        series.recent = Recent.restore(state["recent"])
        bounds = series.baseline.bounds if series.baseline else ()
        series._evidence = Evidence.restore(bounds, state["evidence"])
        series.episode = OpenEpisode(**state["episode"]) if state["episode"] else None
        return series

    def _read(self, names: tuple[str, ...]) -> tuple[Events, tuple[int, ...]]:
        read = self._cache.get(names)
        if read is None:
            events = events_of(names)
            keys = self.baseline.watched(events) if self.baseline else ()
            read = events, self._evidence.places(keys)
            self._cached += sum(map(len, names))
            if len(self._cache) >= _CACHE or self._cached > _CACHED_CHARACTERS:
                self._cache.clear()
                self._cached = 0
                return read
            self._cache[names] = read
        return read

    def _has_learned(self) -> bool:
        time = self.pending.ended - self.pending.started
        return self.pending.total >= LEARNING_INVOCATIONS and time >= LEARNING_TIME

    def _open(self, baseline: Baseline, now: float) -> Episode | None:
        bound, factor = self._evidence.strongest()
        key, limit = bound.key, bound.limit
        start = self.recent.change(
            lambda events: key in baseline.watched(events), gain(limit, factor), factor
        )
        invocations = list(self.recent.after(start))
        self.pending = Counts(invocations[0][1])
        for events, at in invocations:
            self.pending.add(events, at)
        happened = sum(key in baseline.watched(events) for events, _ in invocations)
        self.episode = OpenEpisode(
            opened=now,
            since=invocations[0][1],
            invocations=len(invocations),
            evidence_days=self._evidence.days,
            key=key,
            limit=limit,
            happened=happened,
            counted=len(invocations),
        )
        return self.report()

    def _continue(self, episode: OpenEpisode, events: Events, now: float) -> Episode | None:
        happened = self.baseline is not None and episode.key in self.baseline.watched(events)
        if episode.has_recovered(happened):
            reported = self.report(now, "recovered")
            self.restart(now)
            return reported
        return None

    def _extend(self, baseline: Baseline, now: float) -> None:
        """Merge the pending invocations into the baseline when they are enough."""
        covered = baseline.counts.ended - baseline.counts.started
        if (
            now - self.pending.started < min(covered, WEEK)
            or self.pending.total < LEARNING_INVOCATIONS
        ):
            return
        if self.is_suspicious:
            return
        merged = Counts(baseline.counts.started)
        merged.merge(baseline.counts, 1.0 if covered < WEEK else 0.5)
        merged.merge(self.pending)
        self.adopt(merged, now)
