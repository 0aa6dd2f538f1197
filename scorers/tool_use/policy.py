"""Policies: rules and the calls of an invocation come in, whether the rules were kept goes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.options import tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.calls import call_names
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.tool_use.temporal_rules import Breaches, Rule
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score


@dataclass(frozen=True)
class ToolPolicy(Share):
    """1 when no rule about the order and the number of tool calls was broken, else 0."""

    name: ClassVar[str] = "tool_policy"

    rules: tuple[Rule, ...] = ()
    """The rules; see `pathgauge.scorers.tool_use.temporal_rules`."""
    partial: bool = False
    """The value is the share of the rules that were kept."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        if not self.rules:
            return Score.not_evaluated("not_applicable", "the policy has no rules")
        names = call_names(actual)
        try:
            breaches = [rule.breaches(actual.tool_calls, names) for rule in self.rules]
        except (TooLongError, RecursionError) as error:
            return Score.not_evaluated("too_long", f"arguments cannot be compared: {error}")
        if unknown := tools_unknown(actual):
            lasting = [
                found if rule.lasting else Breaches([], [])
                for rule, found in zip(self.rules, breaches, strict=True)
            ]
            certain = any(found.certain for found in lasting) and not self.partial
            return self._broken([found.certain for found in lasting], names) if certain else unknown
        return self._judged(breaches, names)

    def _judged(self, breaches: Sequence[Breaches], names: Sequence[str]) -> Score:
        score = self._broken([found.certain for found in breaches], names)
        doubtful = [found for found in breaches if found.possible != found.certain]
        worst = self._broken([found.possible for found in breaches], names) if doubtful else score
        if score.value == worst.value:
            return score
        reason = next(found.unknown for found in doubtful if found.unknown)
        return Score.not_evaluated(
            reason,
            f"{reason.replace('_', ' ')}; it may be that {worst.explanation}",
            **worst.details,
        )

    def _broken(self, breaches: Sequence[Sequence[int]], names: Sequence[str]) -> Score:
        """The score for these positions of breaches, rule by rule."""
        found = [
            (rule.label, calls) for rule, calls in zip(self.rules, breaches, strict=True) if calls
        ]
        violations: list[Json] = [
            {"rule": label, "calls": [[index, names[index]] for index in calls]}
            for label, calls in found
        ]
        kept = len(self.rules) - len(found)
        line = f"{kept} of {len(self.rules)} rules kept"
        if found:
            shown = "; ".join(
                f"{label} (call {calls[0]} of {listed([names[calls[0]]])})"
                for label, calls in found[:3]
            )
            line += f"; broken: {' '.join(shown.split())}" + (
                f"; {len(found) - 3} more" if len(found) > 3 else ""
            )
        value = kept / len(self.rules) if self.partial else float(not found)
        return Score(value, None, line, {"violations": violations})
