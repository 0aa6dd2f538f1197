"""A run as the learner sees it: its tool calls by step.

A step is a tool and how often the run had called it before, so that the second search of one run is
compared with the second search of another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pathgauge.scorers.matching.equality import opened, tool_name
from pathgauge.scorers.types import Invocation, Json, ToolCall


class Step(NamedTuple):
    """The n-th call of a tool, counted from 1."""

    tool: str
    number: int

    def __str__(self) -> str:
        return self.tool if self.number == 1 else f"{self.tool} (call {self.number})"


@dataclass(frozen=True, slots=True)
class Run:
    """One invocation."""

    invocation: Invocation
    calls: Mapping[Step, ToolCall]
    """In the order of the calls."""
    called_good: bool = False
    """Whether most people who say something of it call it good."""

    @classmethod
    def of(cls, invocation: Invocation, *, called_good: bool = False) -> Run:
        """Number the calls of each tool."""
        counts: Counter[str] = Counter()
        calls: dict[Step, ToolCall] = {}
        for call in invocation.tool_calls:
            tool = tool_name(call.name)
            counts[tool] += 1
            calls[Step(tool, counts[tool])] = call
        return cls(invocation, calls, called_good)

    def arguments(self, step: Step) -> Mapping[str, Json] | None:
        """The arguments of a call; `None` if they were not recorded or are no object."""
        found = opened(self.calls[step].arguments)
        return found if isinstance(found, Mapping) else None


Runs = Mapping[int, Run]
"""Runs by number."""


def steps_of(runs: Runs, numbers: Sequence[int]) -> list[Step]:
    """All steps of these runs, in the order of first appearance."""
    return list(dict.fromkeys(step for number in numbers for step in runs[number].calls))
