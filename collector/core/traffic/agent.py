"""The traffic of one agent, with its versions.

Invocations of known versions, and invocations without a version, are one stream (`main`). A version
that is new goes on trial: its invocations are compared with the baseline of the main stream, apart
from it, so that even a small share of new traffic is seen and one change is not reported twice. A
trial ends in one of these ways; afterwards the version is known and its invocations belong to the
main stream:

- After seven days and 200 invocations without an episode, its invocations are merged into the main
  stream.
- After an episode of seven days and 200 invocations, the version is accepted: its invocations
  become the baseline, together with those of the main stream, if that had traffic in the last day.
- A third new version ends the trial without invocations for the longest time, as 28 days without
  invocations do.

An episode ends as well if its stream had no invocations for a day while others had 50: the version
was rolled back, or replaced.

Until the main stream has learned, all versions are known. An invocation is in one stream only. The
main stream has half of the time as weight, and each of the two trials a quarter, so that all
streams together have at most one false episode in 365 days on average.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pathgauge.collector.core.traffic.episodes import Episode
from pathgauge.collector.core.traffic.series import ALARM_DAYS, DAY, Series

TRIALS: Final = 2
_KNOWN = 16
_MAIN_WEIGHT, _TRIAL_WEIGHT = 0.5, 0.25


class AgentTraffic:
    """All streams of one agent. Times are Unix seconds and never decrease."""

    def __init__(self, now: float) -> None:
        self.main = Series(now)
        self._trials: dict[str, Series] = {}
        self._known: dict[str, None] = {}

    @property
    def last(self) -> float:
        """When the last invocation was observed."""
        return max(series.last for _, series in self.streams())

    def streams(self) -> Iterator[tuple[str | None, Series]]:
        """The main stream, whose version is `None`, and each version on trial."""
        yield None, self.main
        yield from self._trials.items()

    def observe(
        self,
        version: str | None,
        tool_names: Sequence[str],
        now: float,
        alarm_days: float = ALARM_DAYS,
    ) -> list[tuple[str | None, Episode]]:
        """Add an invocation. The episodes that open, at an evidence of `alarm_days`, or end, with
        their versions on trial.
        """
        changed: list[tuple[str | None, Episode]] = []
        for name, series in list(self.streams()):
            series.skipped += 1
            if series.is_abandoned(now):
                changed += self._supersede(name, now)
        if version is None or version in self._known or self.main.baseline is None:
            changed += self._observe_known(version, tool_names, now, alarm_days)
            return changed
        if version not in self._trials:
            if len(self._trials) == TRIALS:
                oldest = min(self._trials, key=lambda name: self._trials[name].last)
                changed += self._supersede(oldest, now)
            self._trials[version] = Series(now, self.main.baseline, on_trial=True)
        changed += self._observe_trial(version, tool_names, now, alarm_days)
        return changed

    def set_back(self, now: float) -> None:
        """The clock was ahead: later times count as `now`. Otherwise no time would pass, and no
        evidence could grow, until the wrong time has come.
        """
        for _, series in self.streams():
            series.set_back(now)

    def state(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        return {
            "main": self.main.state(),
            "trials": {name: trial.state() for name, trial in self._trials.items()},
            "known": list(self._known),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> AgentTraffic:
        """What `state` was made of."""
        agent = cls(0.0)
        agent.main = Series.restore(state["main"])
        agent._trials = {name: Series.restore(trial) for name, trial in state["trials"].items()}
        agent._known = dict.fromkeys(state["known"])
        return agent

    def _observe_known(
        self, version: str | None, tool_names: Sequence[str], now: float, alarm_days: float
    ) -> list[tuple[str | None, Episode]]:
        if version is not None:
            self._remember(version)
        episode = self.main.observe(tool_names, now, _MAIN_WEIGHT, alarm_days)
        changed: list[tuple[str | None, Episode]] = [] if episode is None else [(None, episode)]
        if self.main.episode is not None and self.main.has_lasted(now):
            ended = self.main.report(now, "accepted")
            self.main.adopt(self.main.pending, now)
            changed += [] if ended is None else [(None, ended)]
        return changed

    def _observe_trial(
        self, version: str, tool_names: Sequence[str], now: float, alarm_days: float
    ) -> list[tuple[str | None, Episode]]:
        trial = self._trials[version]
        episode = trial.observe(tool_names, now, _TRIAL_WEIGHT, alarm_days)
        changed: list[tuple[str | None, Episode]] = []
        if episode is not None:
            changed.append((version, episode))
        if not trial.has_lasted(now):
            return changed
        ended = trial.report(now, "accepted")
        if ended is not None:
            changed.append((version, ended))
            changed += self._accept(trial, now)
            self._forget(version)
        elif not trial.is_suspicious:
            self.main.learn(trial.pending, now)
            self._forget(version)
        return changed

    def _accept(self, trial: Series, now: float) -> list[tuple[str | None, Episode]]:
        counts = trial.pending
        if now - self.main.last < DAY:
            counts.merge(self.main.pending)
        ended = self.main.report(now, "superseded")
        self.main.adopt(counts, now)
        return [] if ended is None else [(None, ended)]

    def _supersede(self, version: str | None, now: float) -> list[tuple[str | None, Episode]]:
        """End the episode of a stream, and if it is a trial, that as well."""
        series = self.main if version is None else self._trials[version]
        ended = series.report(now, "superseded")
        if version is None:
            series.restart(now)
        else:
            if not series.is_suspicious:
                self.main.learn(series.pending, now)
            self._forget(version)
        return [] if ended is None else [(version, ended)]

    def _forget(self, version: str) -> None:
        del self._trials[version]
        self._remember(version)

    def _remember(self, version: str) -> None:
        self._known.pop(version, None)
        self._known[version] = None
        if len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]
