"""Scores whether the final response contains required phrases, or none of the forbidden ones.

Phrases are searched literally and without regard to case. For comparisons with a reference text see
`pathgauge.scorers.responses.text_scorer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.options import check_texts
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score


@dataclass(frozen=True)
class ResponseContains(Share):
    """1 if the response has every phrase of the option and of the reference, else 0."""

    name: ClassVar[str] = "response_contains"

    phrases: tuple[str, ...] = ()
    """Phrases required in every response, in addition to those of the reference."""
    partial: bool = False
    """The value is the share of the phrases that were found."""

    def __post_init__(self) -> None:
        _check_phrases(self.phrases)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. Blank phrases of the reference are ignored."""
        required = _distinct((*self.phrases, *(expected.response_contains if expected else ())))
        if not required:
            return Score.not_evaluated("no_reference", "no phrases to look for")
        if actual.final_response is None:
            return Score.not_evaluated("response_not_recorded")
        found = _found(required, actual.final_response)
        missing = [phrase for phrase in required if phrase not in found]
        explanation = f"{len(found)} of {len(required)} phrases found"
        if missing:
            explanation += f"; missing {listed(missing)}"
        value = len(found) / len(required) if self.partial else float(not missing)
        return Score(value, None, explanation, {"found": found, "missing": missing})


@dataclass(frozen=True)
class ResponseExcludes(Share):
    """1 if the response has none of the phrases, else 0."""

    name: ClassVar[str] = "response_excludes"

    phrases: tuple[str, ...] = ()
    """Forbidden phrases."""

    def __post_init__(self) -> None:
        _check_phrases(self.phrases)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used. An empty response has no phrase."""
        forbidden = _distinct(self.phrases)
        if not forbidden:
            return Score.not_evaluated("no_reference", "no phrases to look for")
        if actual.final_response is None:
            return Score.not_evaluated("response_not_recorded")
        found = _found(forbidden, actual.final_response)
        if found:
            return Score(0.0, None, f"the response has {listed(found)}", {"found": found})
        return Score(1.0, None, f"none of {len(forbidden)} phrases found", {"found": found})


def _distinct(phrases: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(phrase for phrase in phrases if phrase.strip()))


def _found(phrases: list[str], response: str) -> list[str]:
    text = response.casefold()
    return [phrase for phrase in phrases if phrase.casefold() in text]


def _check_phrases(phrases: Iterable[str]) -> None:
    """Raise `ValueError` for a blank phrase, which would be found in nearly every response."""
    check_texts("phrases", phrases)
    for phrase in phrases:
        if not phrase.strip():
            raise ValueError(f"phrases: found {phrase!r}, expected text that is not blank")
