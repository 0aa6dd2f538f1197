"""Phrases of the answer: the final response of an invocation comes in, whether it has what it must
have, or must not have, goes out.

A phrase is looked for as it stands, but for upper and lower case. See
`pathgauge.scorers.responses.text_scorer` for answers that are compared with others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score


@dataclass(frozen=True)
class ResponseContains(Share):
    """1 when the response has every phrase of the option and of the reference, else 0."""

    name: ClassVar[str] = "response_contains"

    phrases: tuple[str, ...] = ()
    """Phrases for every response, beside those of the reference."""
    partial: bool = False
    """The value is the share of the phrases that were found."""

    def __post_init__(self) -> None:
        _check_phrases(self.phrases)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; phrases of the reference that are blank ask for nothing."""
        asked = _distinct((*self.phrases, *(expected.response_contains if expected else ())))
        if not asked:
            return Score.not_evaluated("no_reference", "no phrases to look for")
        if actual.final_response is None:
            return Score.not_evaluated("response_not_recorded")
        found = _found(asked, actual.final_response)
        missing = [phrase for phrase in asked if phrase not in found]
        line = f"{len(found)} of {len(asked)} phrases found" + (
            f"; missing {listed(missing)}" if missing else ""
        )
        value = len(found) / len(asked) if self.partial else float(not missing)
        return Score(value, None, line, {"found": found, "missing": missing})


@dataclass(frozen=True)
class ResponseExcludes(Share):
    """1 when the response has none of the phrases, else 0."""

    name: ClassVar[str] = "response_excludes"

    phrases: tuple[str, ...] = ()
    """Phrases that no response may have."""

    def __post_init__(self) -> None:
        _check_phrases(self.phrases)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at. An empty response has no phrase."""
        banned = _distinct(self.phrases)
        if not banned:
            return Score.not_evaluated("no_reference", "no phrases to look for")
        if actual.final_response is None:
            return Score.not_evaluated("response_not_recorded")
        found = _found(banned, actual.final_response)
        line = (
            f"the response has {listed(found)}" if found else f"none of {len(banned)} phrases found"
        )
        return Score(float(not found), None, line, {"found": found})


def _distinct(phrases: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(phrase for phrase in phrases if phrase.strip()))


def _found(phrases: list[str], response: str) -> list[str]:
    text = response.casefold()
    return [phrase for phrase in phrases if phrase.casefold() in text]


def _check_phrases(phrases: Iterable[str]) -> None:
    """A blank phrase is in every response, or in none of those that mean it."""
    for phrase in phrases:
        if not phrase.strip():
            raise ValueError(f"phrases: found {phrase!r}, expected text that is not blank")
