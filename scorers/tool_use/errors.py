"""Scores how many tool calls failed, and from how many failures the agent recovered.

A call failed if its telemetry says so or if the tool answered with an `error`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.options import tools_unknown
from pathgauge.scorers.authoring.ranges import Rate, Share
from pathgauge.scorers.matching.calls import call_names, failed
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score


@dataclass(frozen=True)
class ToolErrorRate(Rate):
    """The share of the tool calls that failed."""

    name: ClassVar[str] = "tool_error_rate"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if unknown := tools_unknown(actual):
            return unknown
        calls, names = actual.tool_calls, call_names(actual)
        if not calls:
            return Score.not_evaluated("not_applicable", "no tool calls")
        failures = _failures(actual)
        explanation = f"{len(failures)} of {counted(len(calls), 'tool call')} failed"
        if failures:
            explanation += f": {listed([names[at] for at in failures])}"
        return Score(
            len(failures) / len(calls),
            None,
            explanation,
            {"failed": [[at, names[at]] for at in failures]},
        )


@dataclass(frozen=True)
class ErrorRecovery(Share):
    """The share of the failed tool calls after which the same tool succeeded."""

    name: ClassVar[str] = "error_recovery"

    any_tool: bool = False
    """The success of another tool counts, too."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used. Success of a call that the same model
        message requested is no recovery, because both calls were made at once.
        """
        if unknown := tools_unknown(actual):
            return unknown
        names = call_names(actual)
        failures = _failures(actual)
        if not failures:
            return Score.not_evaluated("not_applicable", "no tool call failed")
        recovered = self._recovered(actual, names, failures)
        given_up = sorted(set(failures) - set(recovered))
        explanation = (
            f"recovered from {len(recovered)} of {counted(len(failures), 'failed tool call')}"
        )
        if given_up:
            explanation += f"; given up {listed([names[at] for at in given_up])}"
        details = {
            "recovered": [[at, names[at]] for at in recovered],
            "given_up": [[at, names[at]] for at in given_up],
        }
        return Score(len(recovered) / len(failures), None, explanation, details)

    def _recovered(self, actual: Invocation, names: list[str], failures: list[int]) -> list[int]:
        calls = actual.tool_calls
        keys = [""] * len(names) if self.any_tool else names
        failed_calls = set(failures)
        last_success = {key: at for at, key in enumerate(keys) if at not in failed_calls}
        recovered = []
        for at in failures:
            success = last_success.get(keys[at], -1)
            parallel = calls[at].group is not None and calls[at].group == calls[success].group
            if success > at and not parallel:
                recovered.append(at)
        return recovered


def _failures(actual: Invocation) -> list[int]:
    return [at for at, call in enumerate(actual.tool_calls) if failed(call)]
