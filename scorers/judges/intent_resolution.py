"""A judge of whether an agent found out what the user wanted, and settled it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.judges.graded_judge import GradedJudge
from pathgauge.scorers.judges.prompt_members import legend, read_members
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

_QUESTION = """\
You grade how well an AI agent recognised what its user wanted, and settled it.

First name each thing that the user wants, stated or plainly implied. Then give one of these \
grades:
5: Everything was recognised and settled, or the agent asked for exactly what it lacked.
4: Everything was recognised, and settled with small gaps.
3: Most of it was recognised; a part was settled, or all of it in a way the user has to complete.
2: A part was recognised, or little was settled.
1: The answer is about something else, or settles nothing.

To say openly why something cannot be done, and what the user can do instead, settles it. To claim \
that it was done when `trajectory` has no such call does not."""

_MEMBERS = ("user_input", "tools", "trajectory", "response")
_OPTIONAL = ("tools", "trajectory")


@dataclass(frozen=True)
class IntentResolution(GradedJudge):
    """How well the agent recognised and settled what the user wanted, rated from 1 to 5."""

    name: ClassVar[str] = "intent_resolution"

    def instruction_texts(self) -> tuple[str, ...]:
        """The meaning of the grades."""
        return (f"{_QUESTION}\n\n{legend(_MEMBERS)}",)

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """Question and answer, and the tools and calls if they were recorded."""
        return read_members(_MEMBERS, actual, expected, _OPTIONAL)
