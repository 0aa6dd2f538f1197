"""The verdict of `pathgauge score`: passed, or the reasons why not.

A gate does not pass if a line failed, if nothing was compared with a threshold, if a criterion left
out too many invocations, if a required scenario was not run, or if a trace file lacks its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.offline.aggregates import (
    AggregateLine,
    Overall,
    aggregate_lines,
    overall_lines,
    too_few_runs,
)
from pathgauge.collector.offline.coverage import Coverage, coverage, not_run, unmatched
from pathgauge.collector.offline.gate_lines import Line, lines_of
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.types import Reference

NOTHING_JUDGED = "Nothing was compared with a threshold, so the gate does not pass."


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a gate asks for besides the thresholds."""

    min_coverage: float = 1.0
    """The share of invocations that each criterion with a threshold must score."""
    scenarios: frozenset[str] = frozenset()
    """The scenarios that must be run."""
    complete: bool = True
    """Whether everything must be readable: who knows which invocations the rest would have had?"""

    def unmet(self, found: Coverage) -> str:
        """A message about a criterion that scored too few invocations."""
        return f"Coverage {found.share:.3g}, expected {self.min_coverage:g}: {found}."


@dataclass(frozen=True, slots=True)
class Gate:
    """All lines, what is missing, and whether the gate passes."""

    lines: tuple[Line, ...]
    coverage: tuple[Coverage, ...] = ()
    not_run: tuple[str, ...] = ()
    """Scenarios that have a reference, but no invocation."""
    unmatched: Mapping[str, int] = field(default_factory=dict)
    """Why invocations have no reference, with their number, the highest first."""
    requirements: Requirements = Requirements()
    aggregates: tuple[AggregateLine, ...] = ()
    """The criteria that judge many scores together."""
    incomplete: tuple[str, ...] = ()
    """What could not be read of the traces."""
    overall: tuple[Overall, ...] = ()
    """Mean and deviation of all scores of each criterion."""

    @property
    def failures(self) -> tuple[Line | AggregateLine, ...]:
        """The lines that make the gate fail."""
        lines: tuple[Line | AggregateLine, ...] = (*self.lines, *self.aggregates)
        return tuple(line for line in lines if line.verdict in ("failed", "error"))

    @property
    def judged(self) -> bool:
        """Whether any score was compared with a threshold."""
        lines: tuple[Line | AggregateLine, ...] = (*self.lines, *self.aggregates)
        return any(line.verdict in ("passed", "failed") for line in lines)

    @property
    def uncovered(self) -> tuple[Coverage, ...]:
        """The criteria that scored too few invocations."""
        least = self.requirements.min_coverage
        return tuple(one for one in self.coverage if not one.meets(least))

    @property
    def missing(self) -> tuple[str, ...]:
        """The required scenarios that were not run."""
        return tuple(name for name in self.not_run if name in self.requirements.scenarios)

    @property
    def unread(self) -> tuple[str, ...]:
        """What could not be read, although everything must be."""
        return self.incomplete if self.requirements.complete else ()

    @property
    def passed(self) -> bool:
        """Nothing failed or is missing, and a score was compared with a threshold."""
        return self.judged and not self.failures and not self.gaps

    @property
    def gaps(self) -> tuple[str, ...]:
        """One line for everything that is missing."""
        lines = [self.requirements.unmet(one) for one in self.uncovered]
        if self.missing:
            lines.append(f"Required scenarios were not run: {', '.join(self.missing)}.")
        lines += [f"{one}; an invocation may be missing." for one in self.unread]
        if not self.judged:
            lines.append(NOTHING_JUDGED)
        return tuple(lines)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the gate does not pass; empty if it does."""
        return (*map(str, self.failures), *self.gaps)


def judge(
    replayed: Sequence[Replayed],
    evaluator: Evaluator | None = None,
    references: Iterable[Reference] = (),
    requirements: Requirements = Requirements(),
) -> Gate:
    """Aggregate everything that was replayed with the criteria of `evaluator`."""
    lines = tuple(lines_of(replayed))
    return Gate(
        lines,
        coverage(replayed, evaluator or Evaluator(()), too_few_runs(lines)),
        not_run(replayed, references),
        unmatched(replayed, references),
        requirements,
        tuple(aggregate_lines(lines)),
        tuple(chain.from_iterable(one.incomplete for one in replayed)),
        tuple(overall_lines(lines)),
    )
