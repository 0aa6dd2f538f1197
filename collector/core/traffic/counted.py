"""Which invocations count as traffic of an agent, and in which order their tool calls are read.

An invocation with a reference does not count. Its calls are compared with what was expected, so a
change shows in its scores; and many such invocations come from scheduled tests, whose share of the
traffic changes whenever someone starts them. That would look like another behaviour of the agent.

An invocation whose telemetry lacks spans, or that has no spans of tools, does not count either: the
calls that are missing were made.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.scorers.types import Invocation, ToolCall


def counts(evaluation: Evaluation) -> bool:
    """Whether the invocation is traffic without a reference, and its calls are known."""
    invocation = evaluation.invocation
    if evaluation.match.reference is not None:
        return False
    return not invocation.telemetry_lost and "no_tool_spans" not in invocation.flags


def tool_names(invocation: Invocation) -> list[str]:
    """The names of its calls in their order. Calls that one model message requested are sorted: in
    which order they are requested, or end, has no meaning.
    """
    return [name for names in _requested_together(invocation) for name in sorted(names)]


def _requested_together(invocation: Invocation) -> Iterator[list[str]]:
    def request(numbered: tuple[int, ToolCall]) -> tuple[int, bool]:
        number, call = numbered
        return (number, False) if call.group is None else (call.group, True)

    for _, calls in groupby(enumerate(invocation.tool_calls), request):
        yield [call.name for _, call in calls]
