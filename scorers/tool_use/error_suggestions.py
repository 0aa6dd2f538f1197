"""Helpful errors: the failed tool calls of an invocation and its answer come in, whether the tools
suggested what to do, and the answer says so, goes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

from pathgauge.scorers.authoring.options import check_choice, tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.calls import as_object, call_names, counted, failed
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, Json, Reason, ReferenceTurn, Score, ToolCall

Mention = Literal["any", "all", "none"]
"""How many of the suggestions of a tool the answer has to repeat."""


class _Finding(NamedTuple):
    problem: str | None
    """`None`: the error was as it must be, or is not known."""
    unknown: Reason | None = None


@dataclass(frozen=True)
class ErrorSuggestions(Share):
    """1 when every failed tool call came with suggestions and the response has one of them, else 0."""

    name: ClassVar[str] = "error_suggestions"

    mention: Mention = "any"
    """`any`: the response has to have one suggestion of each error. `all`: all of them. `none`: it
    is not looked at.
    """

    def __post_init__(self) -> None:
        check_choice("mention", self.mention, get_args(Mention))

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at. Where no call failed, it has no
        value.
        """
        names = call_names(actual)
        response = None if actual.final_response is None else actual.final_response.casefold()
        findings = {
            index: self._finding(call, response)
            for index, call in enumerate(actual.tool_calls)
            if failed(call)
        }
        details: dict[str, Json] = {
            "errors": [
                [index, names[index], finding.problem] for index, finding in findings.items()
            ]
        }
        problems = [
            f"{listed([names[index]])} (call {index}) {one.problem}"
            for index, one in findings.items()
            if one.problem
        ]
        if problems:
            return Score(
                0.0,
                None,
                problems[0] + (f", and {len(problems) - 1} more" if len(problems) > 1 else ""),
                details,
            )
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

    def _finding(self, call: ToolCall, response: str | None) -> _Finding:
        suggestions = list(_suggestions(call))
        if not suggestions:
            return (
                _Finding(None, "results_not_recorded")
                if call.result is None
                else _Finding("failed without suggestions")
            )
        if self.mention == "none":
            return _Finding(None)
        if response is None:
            return _Finding(None, "response_not_recorded")
        mentioned = [suggestion.casefold() in response for suggestion in suggestions]
        if all(mentioned) if self.mention == "all" else any(mentioned):
            return _Finding(None)
        return _Finding(
            f"failed, and the response does not have {self.mention} of its"
            f" {counted(len(suggestions), 'suggestion')}"
        )


def _suggestions(call: ToolCall) -> Iterator[str]:
    """The texts under `suggestions` of a result, of the error inside of it, or of the error that is
    told of the call.
    """
    result = as_object(call.result)
    for where in (result, as_object(result.get("error")), as_object(call.error)):
        for suggestion in _items(where.get("suggestions")):
            yield from (
                text for text in _items(suggestion) if isinstance(text, str) and text.strip()
            )


def _items(value: Json) -> list[Json]:
    """What a list or an object holds; anything else stands for itself."""
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else [value]
