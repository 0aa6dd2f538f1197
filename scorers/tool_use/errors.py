"""Scores how many tool calls failed, and from how many failures the agent recovered.

A call failed if its telemetry says so or if the tool answered with an `error`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
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


class _Successes:
    """The last success, and the last one that another message requested: calls of a sub-agent may
    stand between those of one message of its caller.
    """

    def __init__(self) -> None:
        self._last = self._other = -1
        self._group: int | None = None

    def add(self, at: int, group: int | None) -> None:
        """Add a success after all others; `group` is that of its message."""
        if group is None or group != self._group:
            self._other = self._last
        self._last, self._group = at, group

    def follow(self, at: int, group: int | None) -> bool:
        """Whether there is one after the call `at`, requested by another message than its own."""
        is_parallel = group is not None and group == self._group
        return at < (self._other if is_parallel else self._last)


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
        successes: dict[str, _Successes] = {}
        for at, key in enumerate(keys):
            if at not in failed_calls:
                successes.setdefault(key, _Successes()).add(at, calls[at].group)
        return [
            at
            for at in failures
            if keys[at] in successes and successes[keys[at]].follow(at, calls[at].group)
        ]


def _failures(actual: Invocation) -> list[int]:
    return [at for at, call in enumerate(actual.tool_calls) if failed(call)]
