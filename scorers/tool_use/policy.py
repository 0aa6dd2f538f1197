"""Scores whether an agent kept rules about the order and the number of its tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.calls import call_names
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.tool_use.temporal_rules import Rule, Violations
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

_MAX_EXPLAINED = 3


@dataclass(frozen=True)
class ToolPolicy(Share):
    """1 if no rule about the order and the number of tool calls was broken, else 0."""

    name: ClassVar[str] = "tool_policy"

    rules: tuple[Rule, ...] = ()
    """The rules, described under *Tool use* in docs/scorers.md."""
    partial: bool = False
    """The value is the share of the rules that were kept."""

    @property
    def missing_option(self) -> str:
        """What must be configured before there can be a score."""
        return "" if self.rules else "rules"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if not self.rules:
            return Score.not_evaluated("not_applicable", "the policy has no rules")
        names = call_names(actual)
        try:
            found = [rule.violations(actual.tool_calls, names) for rule in self.rules]
        except (TooLongError, RecursionError) as error:
            return Score.not_evaluated("too_long", f"arguments cannot be compared: {error}")
        if unknown := tools_unknown(actual):
            return self._score_of_incomplete_calls(found, names) or unknown
        return self._score_of_complete_calls(found, names)

    def _score_of_incomplete_calls(
        self, found: Sequence[Violations], names: Sequence[str]
    ) -> Score | None:
        """0 if missing calls cannot undo a violation; `None` if the value is not known."""
        final = [
            violations.certain if rule.violations_are_final else []
            for rule, violations in zip(self.rules, found, strict=True)
        ]
        if self.partial or not any(final):
            return None
        return self._score(final, names)

    def _score_of_complete_calls(self, found: Sequence[Violations], names: Sequence[str]) -> Score:
        score = self._score([violations.certain for violations in found], names)
        uncertain = [
            violations for violations in found if violations.possible != violations.certain
        ]
        if not uncertain:
            return score
        worst = self._score([violations.possible for violations in found], names)
        if score.value == worst.value:
            return score
        reason = next(violations.unknown for violations in uncertain if violations.unknown)
        return Score.not_evaluated(
            reason,
            f"{reason.replace('_', ' ')}; it may be that {worst.explanation}",
            **worst.details,
        )

    def _score(self, calls_by_rule: Sequence[Sequence[int]], names: Sequence[str]) -> Score:
        """The score for the positions of violating calls, rule by rule."""
        broken = [
            (rule.label, calls)
            for rule, calls in zip(self.rules, calls_by_rule, strict=True)
            if calls
        ]
        violations: list[Json] = [
            {"rule": label, "calls": [[at, names[at]] for at in calls]} for label, calls in broken
        ]
        kept = len(self.rules) - len(broken)
        explanation = f"{kept} of {len(self.rules)} rules kept"
        if broken:
            rules = "; ".join(
                f"{label} (call {calls[0]} of {listed([names[calls[0]]])})"
                for label, calls in broken[:_MAX_EXPLAINED]
            )
            explanation += f"; broken: {' '.join(rules.split())}"
        if len(broken) > _MAX_EXPLAINED:
            explanation += f"; {len(broken) - _MAX_EXPLAINED} more"
        value = kept / len(self.rules) if self.partial else float(not broken)
        return Score(value, None, explanation, {"violations": violations})
