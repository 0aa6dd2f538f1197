"""What happens to a collector, as series: how fast things go in each phase comes in, the values
that Prometheus would scrape go out.

The phases are: all is well, a short disturbance, all is well, a restart (which takes series away
and lets counters begin anew), all is well, bad, good again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

Values = Sequence[float | None]
"""One a step; `None` where the collector was not scraped."""

MAJOR = {"job": "pathgauge", "instance": "a:9464"}


@dataclass(frozen=True)
class Course:
    """How long each phase takes, in minutes."""

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
        """A counter that grows so much a minute."""
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
        """A gauge with these values; that of a `gap` is what Prometheus says of a target that is
        down.
        """
        levels = {"calm": calm, "bad": bad, "good": calm if good is None else good, "gap": gap}
        return [levels[phase] for phase in self.phases()]

    def running_since(self) -> Values:
        """The start time of a process that is restarted in the gap."""
        phases = list(self.phases())
        restarted = (len(phases) - phases[::-1].index("gap")) * self.step * 60
        return [
            None if phase == "gap" else 0.0 if step * self.step * 60 < restarted else restarted
            for step, phase in enumerate(phases)
        ]


def named(name: str, **labels: str) -> str:
    """A series of one collector."""
    pairs = ",".join(f'{label}="{value}"' for label, value in {**MAJOR, **labels}.items())
    return f"{name}{{{pairs}}}"


def notation(values: Values) -> str:
    """The values as promtool reads them. Where scrapes begin to fail, Prometheus marks the series
    as stale.
    """
    parts: list[str] = []
    for absent, run in groupby(values, key=lambda value: value is None):
        kept = list(run)
        if absent:
            parts += (
                ["stale", f"_x{len(kept) - 1}"][: 1 + (len(kept) > 1)]
                if parts
                else [f"_x{len(kept)}"]
            )
        else:
            parts += [f"{value:.12g}" for value in kept if value is not None]
    return " ".join(parts)


def written(series: Mapping[str, Values]) -> list[dict[str, str]]:
    """Series as the `input_series` of promtool."""
    return [{"series": name, "values": notation(values)} for name, values in series.items()]
