"""Scores whether required tools were called and forbidden ones were not, in any order.

A recorded call is certain. Its absence is known only if the telemetry has all tool calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_texts, check_tool
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.calls import as_object, call_names
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.matchers import AtLeast, matches
from pathgauge.scorers.matching.measures import ratio
from pathgauge.scorers.types import ExpectedCall, Invocation, Json, ReferenceTurn, Score, ToolCall


@dataclass(frozen=True)
class RequiredTools(Share):
    """1 if every required tool was called, as often as it is required, else 0."""

    name: ClassVar[str] = "required_tools"

    tools: tuple[str, ...] = ()
    """The tools. If empty, those that the reference expects, without the optional ones."""

    def __post_init__(self) -> None:
        _check_tools("tools", self.tools)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. Among alternative reference trajectories, the one with the fewest
        missing tools counts.
        """
        alternatives = [_names(self.tools)] if self.tools else _required_by(expected)
        if not alternatives:
            return Score.not_evaluated("no_reference", "no reference for the tool calls")
        called = Counter(call_names(actual))
        missing, required = min(
            ((list((Counter(names) - called).elements()), names) for names in alternatives),
            key=lambda found: len(found[0]),
        )
        if missing and (unknown := tools_unknown(actual)):
            return unknown
        details = {"required": required, "missing": missing}
        if missing:
            return Score(0.0, None, f"missing {listed(missing)}", details)
        tools = listed(required) or "none is required"
        return Score(1.0, None, f"all required tools were called: {tools}", details)


@dataclass(frozen=True)
class EssentialToolsPresent(Share):
    """The share of the required tools that were called at least once; 1 if none is required."""

    name: ClassVar[str] = "essential_tools_present"

    required_tools: tuple[str, ...] = ()
    """The tools to look for; a tool that is listed twice counts twice."""

    def __post_init__(self) -> None:
        _check_tools("required_tools", self.required_tools)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        required, called = _names(self.required_tools), set(call_names(actual))
        missing = [name for name in required if name not in called]
        if missing and (unknown := tools_unknown(actual)):
            return unknown
        present = len(required) - len(missing)
        explanation = f"{present} of {len(required)} essential tools were called"
        if missing:
            explanation += f"; missing {listed(missing)}"
        value = ratio(present, len(required), if_empty=1.0)
        return Score(value, None, explanation, {"missing": missing})


@dataclass(frozen=True)
class ForbiddenTools(Share):
    """1 if no forbidden call was made, else 0."""

    name: ClassVar[str] = "forbidden_tools"

    tools: tuple[str, ...] = ()
    """Tools that must not be called, in addition to the calls that the reference forbids."""

    def __post_init__(self) -> None:
        _check_tools("tools", self.tools)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. A call that is forbidden with some arguments is also forbidden with
        these and others.
        """
        forbidden = [*map(ExpectedCall, self.tools), *(expected.forbidden if expected else ())]
        if not forbidden:
            return Score.not_evaluated("no_reference", "no tool is forbidden")
        try:
            return _forbidden_score(actual, forbidden)
        except (TooLongError, RecursionError) as error:
            return Score.not_evaluated("too_long", f"arguments cannot be compared: {error}")


def _required_by(expected: ReferenceTurn | None) -> list[list[str]]:
    """The tools that each alternative trajectory of a reference requires."""
    if expected is None or expected.tool_calls is None:
        return []
    return [
        _names(call.name for call in calls if not call.optional)
        for calls in (expected.tool_calls, *expected.alternatives)
    ]


def _forbidden_score(actual: Invocation, forbidden: Sequence[ExpectedCall]) -> Score:
    names = call_names(actual)
    found = list(_forbidden_calls(actual.tool_calls, names, forbidden))
    if made := [at for at, certain in found if certain]:
        tools = listed([names[at] for at in made])
        return Score(0.0, None, f"called {tools}", {"calls": _positions(made, names)})
    if unknown := tools_unknown(actual):
        return unknown
    if possible := [at for at, _ in found]:
        return Score.not_evaluated(
            "args_not_recorded",
            "arguments not recorded; some arguments are forbidden for"
            f" {listed([names[at] for at in possible])}",
            calls=_positions(possible, names),
        )
    tools = listed([tool_name(call.name) for call in forbidden])
    return Score(1.0, None, f"no call of {tools}", {"calls": []})


def _forbidden_calls(
    calls: Sequence[ToolCall], names: Sequence[str], forbidden: Sequence[ExpectedCall]
) -> Iterator[tuple[int, bool]]:
    """The positions of forbidden calls, and whether each is certain. It is not if only some
    arguments are forbidden and those of the call were not recorded.
    """
    by_name: dict[str, list[AtLeast | None]] = {}
    for expected in forbidden:
        by_name.setdefault(tool_name(expected.name), []).append(
            AtLeast(expected.arguments) if expected.arguments else None
        )
    for at, (call, name) in enumerate(zip(calls, names, strict=True)):
        patterns = by_name.get(name, ())
        if any(_matches(call, pattern) for pattern in patterns):
            yield at, True
        elif patterns and call.arguments is None:
            yield at, False


def _matches(call: ToolCall, pattern: AtLeast | None) -> bool:
    if pattern is None:
        return True
    return call.arguments is not None and matches(pattern, as_object(call.arguments))


def _positions(calls: Iterable[int], names: Sequence[str]) -> list[Json]:
    return [[at, names[at]] for at in calls]


def _names(tools: Iterable[str]) -> list[str]:
    return [tool_name(tool) for tool in tools]


def _check_tools(option: str, tools: Iterable[str]) -> None:
    check_texts(option, tools)
    for tool in tools:
        check_tool(option, tool)
