"""What the caller wants to see of each call of a scorer, beside its result.

Scorers are third-party code. Their results say that one failed, but not where in its code, and not
which one is slow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

OnFailure: TypeAlias = Callable[[str, BaseException | None, str], None]
"""Called with the name of a criterion, what its scorer has raised, and the trace id. `None`: it has
returned what it may not.
"""


def ignore(metric: str, error: BaseException | None, trace_id: str) -> None:
    """Failures are not wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class ScorerWatch:
    """For the thread of one pipeline."""

    on_failure: OnFailure = ignore
    clock: Callable[[], float] = lambda: 0.0
    """Seconds."""
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The time that the scorer of each criterion took, in total."""

    def expect(self, metrics: Iterable[str]) -> None:
        """The time of these criteria begins at 0, unless they are known."""
        for metric in metrics:
            self.seconds.setdefault(metric, 0.0)


UNWATCHED = ScorerWatch()
