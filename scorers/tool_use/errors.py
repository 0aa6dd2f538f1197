"""Failing tools: the calls of an invocation come in, how many failed and how many of these the
agent recovered from goes out.

A call failed when its telemetry says so, or when the tool answered with an `error`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.options import tools_unknown
from pathgauge.scorers.authoring.ranges import Rate, Share
from pathgauge.scorers.matching.calls import call_names, counted, failed
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score


@dataclass(frozen=True)
class ToolErrorRate(Rate):
    """The share of the tool calls that failed."""

    name: ClassVar[str] = "tool_error_rate"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        if unknown := tools_unknown(actual):
            return unknown
        calls, names = actual.tool_calls, call_names(actual)
        if not calls:
            return Score.not_evaluated("not_applicable", "no tool calls")
        failures = [index for index, call in enumerate(calls) if failed(call)]
        line = f"{len(failures)} of {counted(len(calls), 'tool call')} failed"
        line += f": {listed([names[index] for index in failures])}" if failures else ""
        return Score(
            len(failures) / len(calls),
            None,
            line,
            {"failed": [[index, names[index]] for index in failures]},
        )


@dataclass(frozen=True)
class ErrorRecovery(Share):
    """The share of the failed tool calls after which the same tool succeeded."""

    name: ClassVar[str] = "error_recovery"

    any_tool: bool = False
    """The success of another tool counts, too."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at. Calls of the message that asked for
        the failed one were made beside it.
        """
        if unknown := tools_unknown(actual):
            return unknown
        names = call_names(actual)
        failures, recovered = self._failures(actual, names)
        if not failures:
            return Score.not_evaluated("not_applicable", "no tool call failed")
        given_up = [index for index in failures if index not in recovered]
        line = f"recovered from {len(recovered)} of {counted(len(failures), 'failed tool call')}"
        line += f"; given up {listed([names[index] for index in given_up])}" if given_up else ""
        details = {
            "recovered": [[index, names[index]] for index in recovered],
            "given_up": [[index, names[index]] for index in given_up],
        }
        return Score(len(recovered) / len(failures), None, line, details)

    def _failures(self, actual: Invocation, names: list[str]) -> tuple[list[int], list[int]]:
        """The failed calls, and those of them that were recovered from."""
        calls = actual.tool_calls
        failures = [index for index, call in enumerate(calls) if failed(call)]
        at = set(failures)
        last = {
            "" if self.any_tool else name: index
            for index, name in enumerate(names)
            if index not in at
        }
        recovered = []
        for index in failures:
            success = last.get("" if self.any_tool else names[index], -1)
            beside = calls[index].group is not None and calls[index].group == calls[success].group
            if success > index and not beside:
                recovered.append(index)
        return failures, recovered
