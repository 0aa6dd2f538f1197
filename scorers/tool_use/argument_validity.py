"""Whether tools were called as their schemas say: an invocation comes in, the share of calls with
valid arguments goes out.

Importing this module loads jsonschema, which takes a third of a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, get_args

from pathgauge.scorers.authoring.options import check_choice, check_tool, tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.comparison import MAX_CALLS
from pathgauge.scorers.matching.equality import opened, tool_name
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.tool_use.argument_schemas import Checker, Problem, read_schema
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score, ToolCall

UnknownTools = Literal["invalid", "ignore"]

_NOT_OFFERED = (Problem("$", "no such tool was offered"),)
_NO_OBJECT = (Problem("$", "the arguments are not a JSON object"),)


class _Judged(NamedTuple):
    """A call that can be judged, and what is wrong with it; `None` when its arguments were not
    recorded.
    """

    position: int
    tool: str
    problems: tuple[Problem, ...] | None


@dataclass(frozen=True)
class ArgumentValidity(Share):
    """The share of calls whose arguments are valid by the JSON schema of the tool."""

    name: ClassVar[str] = "argument_validity"

    schemas: Mapping[str, Json] | None = field(default=None, hash=False)
    """JSON schemas of arguments by the name of the tool, where the telemetry has none or others."""
    unknown_tools: UnknownTools = "invalid"
    """What a call of a tool counts that is not among the schemas: `invalid`, as the model made it
    up, or nothing.
    """

    def __post_init__(self) -> None:
        check_choice("unknown_tools", self.unknown_tools, get_args(UnknownTools))
        for tool, written in (self.schemas or {}).items():
            check_tool("schemas", tool)
            if isinstance(problem := read_schema(written), str):
                raise ValueError(f"schemas: {tool}: {problem}")

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        if not actual.tool_calls:
            return tools_unknown(actual) or Score.not_evaluated(
                "not_applicable", "no tool was called"
            )
        if len(actual.tool_calls) > MAX_CALLS:
            return Score.not_evaluated(
                "too_long", f"{len(actual.tool_calls)} calls; at most {MAX_CALLS} are checked"
            )
        try:
            return tools_unknown(actual) or _score(
                list(self._judged(actual)), len(actual.tool_calls)
            )
        except TooLongError as error:
            return Score.not_evaluated("too_long", str(error))
        except RecursionError:
            return Score.not_evaluated("too_long", "arguments nested too deep")

    def _judged(self, actual: Invocation) -> Iterator[_Judged]:
        """The calls that can be judged."""
        recorded = {tool_name(tool): schema for tool, schema in actual.tool_schemas.items()}
        schemas = recorded | {
            tool_name(tool): schema for tool, schema in (self.schemas or {}).items()
        }
        checker = Checker(schemas)
        for index, call in enumerate(actual.tool_calls):
            tool = tool_name(call.name)
            if checker.knows(tool):
                if call.arguments is None:
                    yield _Judged(index, tool, None)
                elif (problems := _problems(checker, tool, call)) is not None:
                    yield _Judged(index, tool, problems)
            elif (
                schemas
                and tool not in schemas
                and call.kind == "function"
                and self.unknown_tools == "invalid"
            ):
                yield _Judged(index, tool, _NOT_OFFERED)


def _problems(checker: Checker, tool: str, call: ToolCall) -> tuple[Problem, ...] | None:
    arguments = opened(call.arguments)
    return checker.problems(tool, arguments) if isinstance(arguments, Mapping) else _NO_OBJECT


def _score(judged: list[_Judged], calls: int) -> Score:
    if not judged:
        return Score.not_evaluated("schema_not_recorded", "no schema of a called tool is known")
    rows = [
        [call.position, call.tool, *problem] for call in judged for problem in call.problems or ()
    ]
    valid = sum(call.problems == () for call in judged)
    details = {"invalid": rows, "counts": {"valid": valid, "judged": len(judged), "actual": calls}}
    if unknown := [call.tool for call in judged if call.problems is None]:
        return Score(
            None,
            "args_not_recorded",
            f"the arguments of {listed(unknown)} were not recorded",
            details,
        )
    return Score(valid / len(judged), None, _line(judged, valid), details)


def _line(judged: list[_Judged], valid: int) -> str:
    line = f"{valid} of {len(judged)} calls have valid arguments"
    for call in judged:
        for path, message in call.problems or ():
            return " ".join(f"{line}; {call.tool} {path}: {message}".split())
    return line
