"""Which tools were called, whatever their order: an invocation comes in, whether the required ones
were called and the forbidden ones were not goes out.

A call that was seen is certain; that there was none is known only when the telemetry holds all
calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.options import check_tool, tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.calls import as_object, call_names
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.matchers import AtLeast, matches
from pathgauge.scorers.types import ExpectedCall, Invocation, Json, ReferenceTurn, Score, ToolCall


@dataclass(frozen=True)
class RequiredTools(Share):
    """1 when every required tool was called, as often as it is required, else 0."""

    name: ClassVar[str] = "required_tools"

    tools: tuple[str, ...] = ()
    """The tools; without them those that the reference expects, less the optional ones."""

    def __post_init__(self) -> None:
        _check_tools("tools", self.tools)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; of several reference trajectories the one counts of which least is
        missing.
        """
        required = [_names(self.tools)] if self.tools else _required_by(expected)
        if not required:
            return Score.not_evaluated("no_reference", "no reference for the tool calls")
        called = Counter(call_names(actual))
        missing, asked = min(
            ((list((Counter(names) - called).elements()), names) for names in required),
            key=lambda found: len(found[0]),
        )
        if missing and (unknown := tools_unknown(actual)):
            return unknown
        line = (
            f"missing {listed(missing)}"
            if missing
            else f"all required tools were called: {listed(asked) or 'none is required'}"
        )
        return Score(float(not missing), None, line, {"required": asked, "missing": missing})


@dataclass(frozen=True)
class EssentialToolsPresent(Share):
    """The share of the required tools that were called at least once; 1 when none is required."""

    name: ClassVar[str] = "essential_tools_present"

    required_tools: tuple[str, ...] = ()
    """The tools to look for; one that stands here twice counts twice."""

    def __post_init__(self) -> None:
        _check_tools("required_tools", self.required_tools)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        required, called = _names(self.required_tools), set(call_names(actual))
        missing = [name for name in required if name not in called]
        if missing and (unknown := tools_unknown(actual)):
            return unknown
        present = len(required) - len(missing)
        line = f"{present} of {len(required)} essential tools were called" + (
            f"; missing {listed(missing)}" if missing else ""
        )
        return Score(present / len(required) if required else 1.0, None, line, {"missing": missing})


@dataclass(frozen=True)
class ForbiddenTools(Share):
    """1 when no forbidden call was made, else 0."""

    name: ClassVar[str] = "forbidden_tools"

    tools: tuple[str, ...] = ()
    """Tools that may never be called, beside the calls that the reference forbids."""

    def __post_init__(self) -> None:
        _check_tools("tools", self.tools)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. A reference that forbids a call with arguments forbids it with
        others beside them, too.
        """
        forbidden = [*map(ExpectedCall, self.tools), *(expected.forbidden if expected else ())]
        if not forbidden:
            return Score.not_evaluated("no_reference", "no tool is forbidden")
        try:
            return self._judged(actual, forbidden)
        except (TooLongError, RecursionError) as error:
            return Score.not_evaluated("too_long", f"arguments cannot be compared: {error}")

    def _judged(self, actual: Invocation, forbidden: Sequence[ExpectedCall]) -> Score:
        names = call_names(actual)
        found = list(_forbidden(actual.tool_calls, names, forbidden))
        made = [index for index, certain in found if certain]
        if made:
            return Score(
                0.0,
                None,
                f"called {listed([names[index] for index in made])}",
                {"calls": _positions(made, names)},
            )
        if unknown := tools_unknown(actual):
            return unknown
        if found:
            maybe = [index for index, _ in found]
            line = (
                "arguments not recorded; forbidden with some is"
                f" {listed([names[index] for index in maybe])}"
            )
            return Score.not_evaluated("args_not_recorded", line, calls=_positions(maybe, names))
        return Score(
            1.0,
            None,
            f"no call of {listed([tool_name(call.name) for call in forbidden])}",
            {"calls": []},
        )


def _required_by(expected: ReferenceTurn | None) -> list[list[str]]:
    """The tools that each trajectory of a reference requires."""
    if expected is None or expected.tool_calls is None:
        return []
    return [
        _names(call.name for call in calls if not call.optional)
        for calls in (expected.tool_calls, *expected.alternatives)
    ]


def _forbidden(
    calls: Sequence[ToolCall], names: Sequence[str], forbidden: Sequence[ExpectedCall]
) -> Iterator[tuple[int, bool]]:
    """The positions of forbidden calls, and whether they are certain: arguments that were not
    recorded may be the forbidden ones.
    """
    by_name: dict[str, list[AtLeast | None]] = {}
    for expected in forbidden:
        by_name.setdefault(tool_name(expected.name), []).append(
            AtLeast(expected.arguments) if expected.arguments else None
        )
    for index, (call, name) in enumerate(zip(calls, names, strict=True)):
        for arguments in by_name.get(name, ()):
            if arguments is None or (
                call.arguments is not None and matches(arguments, as_object(call.arguments))
            ):
                yield index, True
                break
        else:
            if name in by_name and call.arguments is None:
                yield index, False


def _positions(calls: Iterable[int], names: Sequence[str]) -> list[Json]:
    return [[index, names[index]] for index in calls]


def _names(tools: Iterable[str]) -> list[str]:
    return [tool_name(tool) for tool in tools]


def _check_tools(option: str, tools: Iterable[str]) -> None:
    for tool in tools:
        check_tool(option, tool)
