"""Time series of a collector with an incident, as Prometheus would scrape them.

The phases are: calm, a short disturbance, calm, a restart (series disappear and counters begin at
0), calm, bad, good.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

Values = Sequence[float | None]
"""One value for each step; `None` if the collector was not scraped."""

MAJOR = {"job": "pathgauge", "instance": "a:9464"}


@dataclass(frozen=True)
class Course:
    """The length of each phase, in minutes."""

    calm: int = 70
    blip: int = 1
    gap: int = 3
    bad: int = 60
    good: int = 90
    step: int = 1

    @property
    def before(self) -> int:
        """Minutes until it gets bad."""
        return 3 * self.calm + self.blip + self.gap

    @property
    def turning(self) -> int:
        """Minutes until it gets good again."""
        return self.before + self.bad

    @property
    def end(self) -> int:
        """Minutes until the end."""
        return self.turning + self.good

    def phases(self) -> Iterator[str]:
        """The phase of each step."""
        lengths = [
            ("calm", self.calm),
            ("bad", self.blip),
            ("calm", self.calm),
            ("gap", self.gap),
            ("calm", self.calm),
        ]
        for phase, minutes in [*lengths, ("bad", self.bad), ("good", self.good)]:
            for _ in range(minutes // self.step):
                yield phase

    def counter(self, calm: float, bad: float, good: float | None = None) -> Values:
        """A counter that grows by these amounts a minute."""
        speeds = {"calm": calm, "bad": bad, "good": calm if good is None else good}
        value, values = 0.0, []
        for phase in self.phases():
            value = 0.0 if phase == "gap" else value + speeds[phase] * self.step
            values.append(None if phase == "gap" else value)
        return values

    def gauge(
        self,
        calm: float | None,
        bad: float | None,
        good: float | None = None,
        gap: float | None = None,
    ) -> Values:
        """A gauge with these values. `gap`: the value during the restart, for series such as `up`
        that Prometheus itself writes.
        """
        levels = {"calm": calm, "bad": bad, "good": calm if good is None else good, "gap": gap}
        return [levels[phase] for phase in self.phases()]

    def running_since(self) -> Values:
        """The start time of a process that is restarted in the gap."""
        phases = list(self.phases())
        restarted = (len(phases) - phases[::-1].index("gap")) * self.step * 60
        return [
            None if phase == "gap" else restarted * (step * self.step * 60 >= restarted)
            for step, phase in enumerate(phases)
        ]


def named(name: str, **labels: str) -> str:
    """The name of a series of one collector."""
    pairs = ",".join(f'{label}="{value}"' for label, value in {**MAJOR, **labels}.items())
    return f"{name}{{{pairs}}}"


def notation(values: Values) -> str:
    """The values in the notation of promtool. When scrapes begin to fail, Prometheus marks the
    series as stale.
    """
    parts: list[str] = []
    for absent, run in groupby(values, key=lambda value: value is None):
        kept = list(run)
        if not absent:
            parts += [f"{value:.12g}" for value in kept if value is not None]
            continue
        missing = len(kept)
        if parts:
            parts.append("stale")
            missing -= 1
        if missing:
            parts.append(f"_x{missing}")
    return " ".join(parts)


def written(series: Mapping[str, Values]) -> list[dict[str, str]]:
    """Series as the `input_series` of promtool."""
    return [{"series": name, "values": notation(values)} for name, values in series.items()]
