"""Parses the text of a model's message as an answer.

Nothing is guessed. If a model wrote text around its answer, only the last JSON object counts,
because models quote the judged data before they answer, and a quotation must not replace an
unreadable answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from pydantic import ValidationError

from pathgauge.scorers.judge_protocol import AnswerT

MAX_CHARS = 200_000
"""Maximum length of an answer."""
MAX_OBJECTS = 200
"""Maximum number of possible object beginnings to try in a text around an answer."""


def parse(text: str, answer: type[AnswerT], *, cut: bool = False) -> AnswerT:
    """Parse an answer: the whole text, or else the last JSON object in it.

    No brace may follow that object. A text that was `cut` off must be valid as a whole, because
    the real answer may be missing after a quotation. Raises `ValueError` with a one-line
    description for the model, which quotes nothing of the text.
    """
    if len(text) > MAX_CHARS:
        raise ValueError(f"the answer is longer than {MAX_CHARS} characters")
    try:
        whole = _DECODER.decode(text)
    except _AmbiguousError as error:
        raise ValueError(str(error)) from None
    except (ValueError, RecursionError):
        if cut:
            raise ValueError("the answer ends before it is complete") from None
        return _last_object(text, answer)
    return _validated(whole, answer)


def _last_object(text: str, answer: type[AnswerT]) -> AnswerT:
    found = [*_objects(text)]
    if not found:
        raise ValueError("found no complete JSON object, expected one that fits the schema")
    value, end = found[-1]
    if _BRACE.search(text, end):
        raise ValueError(
            "found braces after the last complete JSON object, expected it to be the end"
        )
    return _validated(value, answer)


def _objects(text: str) -> Iterator[tuple[Any, int]]:
    """The complete outermost JSON objects in a text, each with its end position.

    Parsing starts only where an object can begin, and at most `MAX_OBJECTS` times, so the cost is
    at most a few hundred times the length of the text.
    """
    end = tried = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < end:
            continue
        tried += 1
        if tried > MAX_OBJECTS:
            raise ValueError(
                "found too many braces around the answer, expected one JSON object and nothing else"
            )
        try:
            value, end = _DECODER.raw_decode(text, begin.start())
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string") or not text[error.pos :].strip():
                raise ValueError("the JSON object ends before it is complete") from None
        except RecursionError:
            raise ValueError(
                "found deeply nested JSON, expected one object that fits the schema"
            ) from None
        else:
            yield value, end


def _validated(value: Any, answer: type[AnswerT]) -> AnswerT:
    if not isinstance(value, dict):
        raise ValueError("found JSON that is no object, expected an object that fits the schema")
    try:
        return answer.model_validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        descriptions = dict.fromkeys(map(_description, details))
        raise ValueError("; ".join([*descriptions][:5])) from None


def _description(details: Any) -> str:
    if details["type"] == "extra_forbidden":
        return "found members that are not in the schema"
    return f"{'.'.join(map(str, details['loc']))}: {details['msg'].removeprefix('Value error, ')}"


class _AmbiguousError(ValueError):
    """JSON that parsers interpret differently."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _AmbiguousError("found a member twice in one object, expected it once")
    return found


def _integer(digits: str) -> int:
    if len(digits) > 300:
        raise _AmbiguousError(f"found a number of {len(digits)} digits, expected a smaller one")
    return int(digits)


def _reject_constant(constant: str) -> NoReturn:
    raise _AmbiguousError(f"found {constant}, expected a finite number")


# Not strict: models put line breaks into strings.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_constant=_reject_constant, strict=False
)
_BEGIN = re.compile(r'\{(?=\s*+["}])')
_BRACE = re.compile("[{}]")
