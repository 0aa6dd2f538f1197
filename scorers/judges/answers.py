"""Answers of models: the text of a message comes in, a checked answer goes out, or a `ValueError`
whose line tells the model what to mend.

Nothing is guessed. A label is one of those that were asked for, letter by letter; a number is
finite and in its range; whatever was to be answered once for each of several things is answered
exactly once. Where a model wrote more than its answer, the last JSON object counts, or none does:
what it quotes, it quotes before it answers, and a quotation must not stand in for an answer that
cannot be read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NoReturn

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
)

from pathgauge.scorers.judge_protocol import AnswerT

MAX_CHARS = 200_000
"""Of a text that is read as an answer."""
MAX_OBJECTS = 200
"""Beginnings of objects in a text around an answer, beyond which it is not searched."""


Reasoning = Annotated[str, AfterValidator(lambda text: text.encode(errors="replace").decode())]
"""A text that every store can hold: half a surrogate pair is a question mark."""


class Answer(BaseModel):
    """What all answers have in common: nothing is left out, added or converted."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, hide_input_in_errors=True
    )


class Reasoned(Answer):
    """An answer with its reason, which comes first, so that what it says can follow from it."""

    reasoning: Reasoning


class Label(Reasoned):
    """One of several words."""

    verdict: str


class Holds(Reasoned):
    """Whether something holds."""

    score: bool


class Number(Reasoned):
    """A number."""

    score: float


class Item(Answer):
    """The verdict on one of several numbered things."""

    number: int
    reasoning: Reasoning
    verdict: str


class Items(Answer):
    """One verdict for each of several numbered things, in any order."""

    verdicts: list[Item]

    def in_order(self) -> tuple[Item, ...]:
        """The verdicts in the order of their numbers."""
        return tuple(sorted(self.verdicts, key=lambda item: item.number))


@cache
def label(*labels: str) -> type[Label]:
    """An answer that is one of these labels."""
    return create_model("Label", __base__=Label, verdict=(_one_of("string", labels), ...))


@cache
def choice(*values: float) -> type[Number]:
    """An answer that is one of these numbers."""
    return create_model("Choice", __base__=Number, score=(_one_of("number", values), ...))


@cache
def number(low: float, high: float) -> type[Number]:
    """An answer from `low` to `high`."""
    return create_model(
        "Number", __base__=Number, score=(Annotated[float, Field(ge=low, le=high)], ...)
    )


@cache
def items(count: int, *labels: str) -> type[Items]:
    """One of these labels for each of the numbers from 1 to `count`."""
    numbered = Annotated[int, Field(ge=1, le=count)]
    item: Any = create_model(
        "Item", __base__=Item, number=(numbered, ...), verdict=(_one_of("string", labels), ...)
    )
    return create_model(
        "Items",
        __base__=Items,
        verdicts=(Annotated[list[item], AfterValidator(_each_once(count))], ...),
    )


def parse(text: str, answer: type[AnswerT], *, cut: bool = False) -> AnswerT:
    """The answer in the text: all of it, or else the last JSON object in it, after which no brace
    may follow.

    Of a text that was `cut` it has to be all, as what follows a quotation may be missing.
    Raises `ValueError` with one line that says what to mend; it quotes nothing of the text.
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
        return _last(text, answer)
    return _checked(whole, answer)


def _last(text: str, answer: type[AnswerT]) -> AnswerT:
    found = [*_objects(text)]
    if not found:
        raise ValueError("found no complete JSON object, expected one that fits the schema")
    value, end = found[-1]
    if _BRACE.search(text, end):
        raise ValueError(
            "found braces after the last complete JSON object, expected it to be the end"
        )
    return _checked(value, answer)


def _objects(text: str) -> Iterator[tuple[Any, int]]:
    """The complete JSON objects in a text that are part of no other, each with its end.

    Each one is searched for only where one can begin, and at few places, so that no text costs more
    than its length some hundred times.
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


def _checked(value: Any, answer: type[AnswerT]) -> AnswerT:
    if not isinstance(value, dict):
        raise ValueError("found JSON that is no object, expected an object that fits the schema")
    try:
        return answer.model_validate(value)
    except ValidationError as error:
        mistakes = dict.fromkeys(
            _told(details)
            for details in error.errors(
                include_url=False, include_context=False, include_input=False
            )
        )
        raise ValueError("; ".join([*mistakes][:5])) from None


def _told(details: Any) -> str:
    if details["type"] == "extra_forbidden":
        return "found members that are not in the schema"
    return f"{'.'.join(map(str, details['loc']))}: {details['msg'].removeprefix('Value error, ')}"


class _AmbiguousError(ValueError):
    """JSON that readers understand differently."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _AmbiguousError("found a member twice in one object, expected it once")
    return found


def _whole(digits: str) -> int:
    if len(digits) > 300:
        raise _AmbiguousError(f"found a number of {len(digits)} digits, expected a smaller one")
    return int(digits)


def _no_number(constant: str) -> NoReturn:
    raise _AmbiguousError(f"found {constant}, expected a finite number")


# Not strict, as models break lines inside of strings.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole, parse_constant=_no_number, strict=False
)
_BEGIN = re.compile(r'\{(?=\s*+["}])')
_BRACE = re.compile("[{}]")


def _one_of(kind: Literal["string", "number"], values: Sequence[str | float]) -> Any:
    def check(value: Any) -> Any:
        if value not in values:
            raise ValueError(f"expected one of {', '.join(json.dumps(known) for known in values)}")
        return value

    plain = str if kind == "string" else float
    return Annotated[
        plain, AfterValidator(check), WithJsonSchema({"type": kind, "enum": [*values]})
    ]


def _each_once(count: int) -> Any:
    def check(answered: list[Item]) -> list[Item]:
        times = Counter(item.number for item in answered)
        lacking = [number for number in range(1, count + 1) if number not in times]
        twice = [number for number, found in times.items() if found > 1]
        if lacking or twice:
            raise ValueError(
                "; ".join(
                    [*_numbers("no verdict on", lacking), *_numbers("several verdicts on", twice)]
                )
            )
        return answered

    return check


def _numbers(what: str, numbers: Sequence[int]) -> Iterable[str]:
    if numbers:
        yield (
            f"{what}"
            f" {', '.join(map(str, numbers[:20]))}{' and others' if len(numbers) > 20 else ''}"
        )
