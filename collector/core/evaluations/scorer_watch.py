"""What the caller wants to see of each call of a scorer, beside its result.

Scorers are third-party code. Their results say that one failed, but not where in its code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

OnFailure: TypeAlias = Callable[[str, BaseException | None, str], None]
"""Called with the name of a criterion, what its scorer has raised, and the trace id. `None`: it has
returned what it may not.
"""


def ignore(metric: str, error: BaseException | None, trace_id: str) -> None:
    """Failures are not wanted."""


@dataclass(frozen=True, slots=True)
class ScorerWatch:
    """For the thread of one pipeline."""

    on_failure: OnFailure = ignore


UNWATCHED = ScorerWatch()
