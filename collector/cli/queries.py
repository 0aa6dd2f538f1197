"""Makes queries of the API from options, and explains options that are not valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import typer
from pydantic import ValidationError

from pathgauge.collector.api.queries import Query
from pathgauge.collector.core.documents.quantities import parse_duration
from pathgauge.scorers.matching.wording import cut

_MAX_FOUND = 80

QueryT = TypeVar("QueryT", bound=Query)


def query_of(
    kind: type[QueryT], options: Mapping[str, str | Sequence[str] | None], **more: float
) -> QueryT:
    """A query with the options that were given."""
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return kind.model_validate({**given, **more})
    except ValidationError as error:
        raise typer.BadParameter(_problem(error)) from error


def seconds_of(option: str, text: str) -> float:
    """The value of an option that is a duration."""
    try:
        return parse_duration(text)
    except ValueError as error:
        found = cut(repr(text), _MAX_FOUND)
        raise typer.BadParameter(f"--{option}: found {found}, expected {error}") from error


def _problem(error: ValidationError) -> str:
    """What is wrong with the first option that is not valid."""
    first = error.errors(include_url=False)[0]
    context = first.get("ctx", {})
    expected = context.get("expected") or context.get("error") or first["msg"]
    found = cut(repr(first["input"]), _MAX_FOUND)
    return f"--{first['loc'][0]}: found {found}, expected {expected}"
