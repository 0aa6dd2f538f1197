"""Compares servers by rounds that alternate between them.

A machine is slower at one time than at another, by up to half. So each round measures every server
once, ratios are taken within a round, and the table has the medians over the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from benchmarks.servers import Run

BARE = "bare receiver"


class Key(NamedTuple):
    """One row of the table."""

    load: str
    server: str

    def __str__(self) -> str:
        return f"{self.load}, {self.server}"


class Ratios(NamedTuple):
    """What a server did, as shares of the bare receiver under the same load."""

    acked: float
    scored: float
    cpu: float

    @classmethod
    def of(cls, run: Run, bare: Run) -> Ratios:
        """The ratios of two runs of one round."""
        return cls(
            run.acked_per_s / bare.acked_per_s,
            run.scored_per_s / bare.acked_per_s,
            run.cpu_us_per_span / bare.cpu_us_per_span,
        )


@dataclass
class Rounds:
    """All runs so far."""

    servers: Mapping[Key, Callable[[], Run]]
    runs: list[Mapping[Key, Run]] = field(default_factory=list)

    def measure(self, rounds: int = 1) -> None:
        """Add rounds."""
        for _ in range(rounds):
            self.runs.append({key: measure() for key, measure in self.servers.items()})

    def ratios(self, key: Key) -> list[Ratios]:
        """The ratios of a server, round by round."""
        bare = Key(key.load, BARE)
        return [Ratios.of(runs[key], runs[bare]) for runs in self.runs]

    def medians(self, key: Key) -> Ratios:
        """The median of each ratio."""
        return Ratios(*map(median, zip(*self.ratios(key), strict=True)))

    def median(self, key: Key, value: Callable[[Run], float]) -> float:
        """The median of something else."""
        return median(value(runs[key]) for runs in self.runs)

    def table(self) -> Iterator[str]:
        """The lines of the table of medians."""
        yield (
            f"{'load, server':44}{'acked/s':>9}{'/bare':>7}{'scored/s':>9}{'/bare':>7}"
            f"{'CPU us/span':>12}{'/bare':>7}{'p50 ms':>8}{'p99 ms':>8}{'RSS MiB':>9}{'refused':>9}"
        )
        for key in self.servers:
            yield f"{key!s:44}" + self._cells(key)

    def _cells(self, key: Key) -> str:
        acked, scored, cpu = map("{:7.2f}".format, self.medians(key))
        return "".join(
            (
                f"{self.median(key, lambda run: run.acked_per_s):9,.0f}{acked}",
                f"{self.median(key, lambda run: run.scored_per_s):9,.0f}{scored}",
                f"{self.median(key, lambda run: run.cpu_us_per_span):12.1f}{cpu}",
                f"{self.median(key, lambda run: run.load['ack_p50_ms']):8.1f}",
                f"{self.median(key, lambda run: run.load['ack_p99_ms']):8.1f}",
                f"{self.median(key, lambda run: run.rss_mib):9.0f}",
                f"{self.median(key, lambda run: run.load['refused']):9,.0f}",
            )
        )

    def by_round(self, keys: Sequence[Key]) -> Iterator[str]:
        """The ratios of each round."""
        yield f"{'ratios to the bare receiver, by round':44}{'acked':24}{'scored':24}CPU"
        for key in keys:
            columns = zip(*self.ratios(key), strict=True)
            yield f"{key!s:44}" + "".join(
                f"{' '.join(f'{ratio:.2f}' for ratio in column):24}" for column in columns
            )
