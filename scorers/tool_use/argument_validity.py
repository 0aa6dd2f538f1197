"""Scores the share of tool calls whose arguments are valid by the tool's JSON schema.

Importing this module loads jsonschema, which takes a third of a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, get_args

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_choice, check_tool
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.comparison import MAX_CALLS
from pathgauge.scorers.matching.equality import opened, tool_name
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.tool_use.argument_schemas import Checker, Problem, read_schema
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score, ToolCall

UnknownTools = Literal["invalid", "ignore"]

_UNKNOWN_TOOL = (Problem("$", "no such tool was offered"),)
_NO_OBJECT = (Problem("$", "the arguments are not a JSON object"),)


class _CheckedCall(NamedTuple):
    position: int
    tool: str
    problems: tuple[Problem, ...] | None
    """`None` if the arguments were not recorded."""


@dataclass(frozen=True)
class ArgumentValidity(Share):
    """The share of calls whose arguments are valid by the JSON schema of the tool."""

    name: ClassVar[str] = "argument_validity"

    schemas: Mapping[str, Json] | None = field(default=None, hash=False)
    """JSON schemas of arguments, by the name of the tool. They take precedence over those of the
    telemetry.
    """
    unknown_tools: UnknownTools = "invalid"
    """How to count calls of tools that no schema names: as `invalid`, because the model invented
    the tool, or not at all.
    """

    def __post_init__(self) -> None:
        check_choice("unknown_tools", self.unknown_tools, get_args(UnknownTools))
        for tool, schema in (self.schemas or {}).items():
            check_tool("schemas", tool)
            if isinstance(problem := read_schema(schema), str):
                raise ValueError(f"schemas: {tool}: {problem}")

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        calls = len(actual.tool_calls)
        if calls > MAX_CALLS:
            return Score.not_evaluated(
                "too_long", f"{counted(calls, 'call')}; at most {MAX_CALLS} are checked"
            )
        if unknown := tools_unknown(actual):
            return unknown
        if not calls:
            return Score.not_evaluated("not_applicable", "no tool was called")
        try:
            return _score(list(self._checked_calls(actual)), calls)
        except TooLongError as error:
            return Score.not_evaluated("too_long", str(error))
        except RecursionError:
            return Score.not_evaluated("too_long", "arguments nested too deep")

    def _checked_calls(self, actual: Invocation) -> Iterator[_CheckedCall]:
        schemas = {
            tool_name(tool): schema
            for tool, schema in (*actual.tool_schemas.items(), *(self.schemas or {}).items())
        }
        checker = Checker(schemas)
        for at, call in enumerate(actual.tool_calls):
            tool = tool_name(call.name)
            if checker.knows(tool):
                if call.arguments is None:
                    yield _CheckedCall(at, tool, None)
                elif (problems := _problems(checker, tool, call)) is not None:
                    yield _CheckedCall(at, tool, problems)
            elif schemas and tool not in schemas and self._must_be_known(call):
                yield _CheckedCall(at, tool, _UNKNOWN_TOOL)

    def _must_be_known(self, call: ToolCall) -> bool:
        return call.kind == "function" and self.unknown_tools == "invalid"


def _problems(checker: Checker, tool: str, call: ToolCall) -> tuple[Problem, ...] | None:
    arguments = opened(call.arguments)
    return checker.problems(tool, arguments) if isinstance(arguments, Mapping) else _NO_OBJECT


def _score(checked: list[_CheckedCall], calls: int) -> Score:
    if not checked:
        return Score.not_evaluated("schema_not_recorded", "no schema of a called tool is known")
    rows = [
        [call.position, call.tool, *problem] for call in checked for problem in call.problems or ()
    ]
    valid = sum(call.problems == () for call in checked)
    details: dict[str, Json] = {
        "invalid": rows,
        "counts": {"valid": valid, "judged": len(checked), "actual": calls},
    }
    if unknown := [call.tool for call in checked if call.problems is None]:
        return Score.not_evaluated(
            "args_not_recorded", f"the arguments of {listed(unknown)} were not recorded", **details
        )
    explanation = f"{valid} of {len(checked)} calls have valid arguments"
    if rows:
        _, tool, path, message = rows[0]
        explanation = " ".join(f"{explanation}; {tool} {path}: {message}".split())
    return Score(valid / len(checked), None, explanation, details)
