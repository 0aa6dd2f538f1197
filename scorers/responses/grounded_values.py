"""Scores whether the values of the response come from tool results or from the user.

No model is asked: a number, date, time, phone number or id that occurs nowhere in what the agent
was told is one that it made up, computed, or knew. Rounded numbers and other formats count as the
same value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.calls import outcome_known
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.responses.value_sources import Sources
from pathgauge.scorers.responses.values_in_text import Value, values
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

MAX_RESPONSE = 50_000
"""Characters of a response."""


@dataclass(frozen=True)
class GroundedValues(Share):
    """The share of the numbers, dates, times, phone numbers and ids in the response that occur in
    tool results or in the user's input.
    """

    name: ClassVar[str] = "grounded_values"

    ignore_up_to: int = 10
    """Whole numbers up to this one are ignored, as they often count or number things. Amounts with
    decimals, a percent sign or a currency are not.
    """
    user_input: bool = True
    """Values of the user's input are grounded, too."""

    def __post_init__(self) -> None:
        if self.ignore_up_to < 0:
            raise ValueError(f"ignore_up_to: found {self.ignore_up_to}, expected a number from 0")

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        response = actual.final_response
        if response is None:
            return Score.not_evaluated("response_not_recorded")
        if len(response) > MAX_RESPONSE:
            return Score.not_evaluated("too_long", f"a response of {len(response):,} characters")
        found = {value.text: value for value in values(response) if not self._is_small(value)}
        if not found:
            return Score.not_evaluated("not_applicable", "the response has no values to look up")
        try:
            sources = Sources(self._sources(actual))
            grounded = {text: sources.has(value) for text, value in found.items()}
        except TooLongError as error:
            return Score.not_evaluated("too_long", str(error))
        if not all(grounded.values()) and (unknown := self._sources_unknown(actual)):
            return unknown
        return _score(grounded)

    def _is_small(self, value: Value) -> bool:
        number = value.number
        if number is None or number.is_amount or number.parts:
            return False
        return all(reading.value <= self.ignore_up_to for reading in number.readings)

    def _sources(self, actual: Invocation) -> Iterator[Json]:
        for call in actual.tool_calls:
            yield from (call.result, call.error)
        if self.user_input:
            yield actual.user_input

    def _sources_unknown(self, actual: Invocation) -> Score | None:
        """A score without value if a value may occur in what was not recorded."""
        if unknown := tools_unknown(actual):
            return unknown
        calls = (call for call in actual.tool_calls if call.kind in ("function", "agent"))
        if not all(map(outcome_known, calls)):
            return Score.not_evaluated("results_not_recorded")
        if self.user_input and actual.user_input is None:
            return Score.not_evaluated("incomplete", "the user's input is not recorded")
        if "truncated" in actual.flags:
            return Score.not_evaluated("incomplete", "a part of the content was cut off")
        return None


def _score(grounded: dict[str, bool]) -> Score:
    missing = [text for text, is_grounded in grounded.items() if not is_grounded]
    count = len(grounded) - len(missing)
    explanation = f"{count} of {len(grounded)} values occur in tool results or the user's input"
    if missing:
        explanation += f"; not {listed(missing)}"
    details: dict[str, Json] = {"values": len(grounded), "ungrounded": missing}
    return Score(count / len(grounded), None, explanation, details)
