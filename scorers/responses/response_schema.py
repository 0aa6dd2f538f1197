"""Scores whether the final response is JSON of the required form.

Importing this module loads jsonschema, which takes a third of a second.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.wording import and_more, cut, one_line
from pathgauge.scorers.tool_use.argument_schemas import Checker, read_schema
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

_RESPONSE = "response"
_CODE_BLOCK = re.compile(r"^```[^\n`]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class ResponseSchema(Share):
    """1 if the response is JSON that is valid by a JSON schema, else 0."""

    name: ClassVar[str] = "response_schema"
    binary: ClassVar[bool] = True

    schema: Mapping[str, Json] | None = field(default=None, hash=False)
    """The JSON schema; `null` accepts any JSON."""
    code_block: bool = False
    """The JSON may also be in the first Markdown code block, with any text around it."""

    def __post_init__(self) -> None:
        if isinstance(problem := read_schema(self._schema), str):
            raise ValueError(f"schema: {problem}")

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if actual.final_response is None:
            return Score.not_evaluated("response_not_recorded")
        try:
            return self._score(self._json_text(actual.final_response))
        except TooLongError:
            return Score.not_evaluated("too_long", "checking the response takes too long")
        except RecursionError:
            return Score.not_evaluated("too_long", "the response is nested too deep")

    @property
    def _schema(self) -> Json:
        return {} if self.schema is None else dict(self.schema)

    def _json_text(self, response: str) -> str:
        if self.code_block and (block := _CODE_BLOCK.search(response)):
            return block[1]
        return response

    def _score(self, text: str) -> Score:
        try:
            value = json.loads(text, parse_constant=_refuse)
        except ValueError as error:
            explanation = one_line(f"the response is not JSON: {cut(str(error), 100)}")
            return Score(0.0, None, explanation, {"problems": [["$", "not JSON"]]})
        problems = Checker({_RESPONSE: self._schema}).problems(_RESPONSE, value)
        if problems is None:
            return Score.not_evaluated("too_long", "the schema cannot be applied")
        details = {"problems": [list(problem) for problem in problems]}
        if problems:
            path, message = problems[0]
            explanation = one_line(f"{path}: {message}{and_more(problems)}")
            return Score(0.0, None, explanation, details)
        return Score(1.0, None, "the response is valid", details)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"found {constant}")
