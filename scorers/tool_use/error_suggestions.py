"""Scores whether failed tool calls returned suggestions and the response passed them on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.calls import as_object, call_names, failed
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.wording import and_more, counted
from pathgauge.scorers.types import Invocation, Json, Reason, ReferenceTurn, Score, ToolCall

Mention = Literal["any", "all", "none"]
"""How many of a tool's suggestions the response must repeat."""


class _Finding(NamedTuple):
    problem: str | None
    """`None`: no problem, or not known."""
    unknown: Reason | None = None


@dataclass(frozen=True)
class ErrorSuggestions(Share):
    """1 if every failed tool call returned suggestions and the response has one of them, else 0."""

    name: ClassVar[str] = "error_suggestions"

    mention: Mention = "any"
    """`any`: the response must have one suggestion of each error. `all`: all of them. `none`: the
    response is not checked.
    """

    def __post_init__(self) -> None:
        check_choice("mention", self.mention, get_args(Mention))

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used. If no call failed, there is no value."""
        names = call_names(actual)
        findings = self._findings(actual)
        problems = [
            f"{listed([names[at]])} (call {at}) {finding.problem}"
            for at, finding in findings.items()
            if finding.problem
        ]
        details: dict[str, Json] = {
            "errors": [[at, names[at], finding.problem] for at, finding in findings.items()]
        }
        if problems:
            return Score(0.0, None, problems[0] + and_more(problems), details)
        if unknown := tools_unknown(actual):
            return unknown
        for finding in findings.values():
            if finding.unknown:
                return Score.not_evaluated(finding.unknown, **details)
        if not findings:
            return Score.not_evaluated("not_applicable", "no tool call failed")
        return Score(
            1.0, None, f"{counted(len(findings), 'failed tool call')} with suggestions", details
        )

    def _findings(self, actual: Invocation) -> dict[int, _Finding]:
        """One per failed call, by its position."""
        response = None if actual.final_response is None else actual.final_response.casefold()
        return {
            at: self._finding(call, response)
            for at, call in enumerate(actual.tool_calls)
            if failed(call)
        }

    def _finding(self, call: ToolCall, response: str | None) -> _Finding:
        suggestions = list(_suggestions(call))
        if not suggestions and call.result is None:
            return _Finding(None, "results_not_recorded")
        if not suggestions:
            return _Finding("failed without suggestions")
        if self.mention == "none":
            return _Finding(None)
        if response is None:
            return _Finding(None, "response_not_recorded")
        enough = all if self.mention == "all" else any
        if enough(suggestion.casefold() in response for suggestion in suggestions):
            return _Finding(None)
        return _Finding(
            f"failed, and the response does not have {self.mention} of its"
            f" {counted(len(suggestions), 'suggestion')}"
        )


def _suggestions(call: ToolCall) -> Iterator[str]:
    """The texts under `suggestions` in the result, in the error inside the result, and in the error
    of the call.
    """
    result = as_object(call.result)
    for place in (result, as_object(result.get("error")), as_object(call.error)):
        for suggestion in _items(place.get("suggestions")):
            for text in _items(suggestion):
                if isinstance(text, str) and text.strip():
                    yield text


def _items(value: Json) -> list[Json]:
    """The items of a list or the values of an object; any other value as the only item."""
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else [value]
