"""Schemas of model answers.

They are strict: labels must match exactly, numbers must be finite and in range, and each of several
numbered items needs exactly one verdict.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
)

Reasoning = Annotated[str, AfterValidator(lambda text: text.encode(errors="replace").decode())]
"""Text that can be encoded as UTF-8: lone surrogates become question marks."""


class Answer(BaseModel):
    """Strict: no missing or additional members, no type conversions."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, hide_input_in_errors=True
    )


class Reasoned(Answer):
    """An answer with its reasoning, which comes first so that the model reasons before deciding."""

    reasoning: Reasoning


class Label(Reasoned):
    """One of several words."""

    verdict: str


# Name and docstring of this class are part of the JSON schema that models see, so a change alters
# the `template` of judges.
class Holds(Reasoned):
    """Whether something holds."""

    score: bool


class Number(Reasoned):
    """A number."""

    score: float


class Item(Answer):
    """The verdict on one of several numbered items."""

    number: int
    reasoning: Reasoning
    verdict: str


class Items(Answer):
    """One verdict for each of several numbered items, in any order."""

    verdicts: list[Item]

    def in_order(self) -> tuple[Item, ...]:
        """The verdicts, ordered by number."""
        return tuple(sorted(self.verdicts, key=lambda item: item.number))


class Finding(Answer):
    """Whether one statement, which the model has written, holds."""

    statement: Reasoning
    reasoning: Reasoning
    holds: bool


class Findings(Answer):
    """Statements that the model has written, with its verdict on each."""

    findings: Annotated[list[Finding], Field(min_length=1, max_length=20)]


@cache
def label(*labels: str) -> type[Label]:
    """The schema of an answer with one of these labels."""
    return create_model("Label", __base__=Label, verdict=(_one_of("string", labels), ...))


@cache
def choice(*values: float) -> type[Number]:
    """The schema of an answer with one of these numbers."""
    return create_model("Choice", __base__=Number, score=(_one_of("number", values), ...))


@cache
def number(low: float, high: float) -> type[Number]:
    """The schema of an answer with a number from `low` to `high`."""
    return create_model(
        "Number", __base__=Number, score=(Annotated[float, Field(ge=low, le=high)], ...)
    )


@cache
def items(count: int, *labels: str) -> type[Items]:
    """The schema of an answer with one of these labels for each number from 1 to `count`."""
    numbered = Annotated[int, Field(ge=1, le=count)]
    item: Any = create_model(
        "Item", __base__=Item, number=(numbered, ...), verdict=(_one_of("string", labels), ...)
    )
    return create_model(
        "Items",
        __base__=Items,
        verdicts=(Annotated[list[item], AfterValidator(_each_once(count))], ...),
    )


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
    def check(verdicts: list[Item]) -> list[Item]:
        counts = Counter(item.number for item in verdicts)
        missing = [number for number in range(1, count + 1) if number not in counts]
        repeated = [number for number, found in counts.items() if found > 1]
        errors = [
            *_listed("no verdict on", missing),
            *_listed("several verdicts on", repeated),
        ]
        if errors:
            raise ValueError("; ".join(errors))
        return verdicts

    return check


def _listed(prefix: str, numbers: Sequence[int]) -> Iterator[str]:
    if not numbers:
        return
    line = f"{prefix} {', '.join(map(str, numbers[:20]))}"
    yield f"{line} and others" if len(numbers) > 20 else line
