"""Errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from http import HTTPStatus
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from pathgauge.collector.api.models import Problem
from pathgauge.collector.core.documents import did_you_mean
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.queries.reading import QueryTooSlowError
from pathgauge.collector.store.queries.traces import AmbiguousTraceError

SEVERAL_TENANTS = "several tenants have this trace: name one of them with `tenant`"
OTHER_TENANT = "tenant: found another tenant than that of the token"
STANDBY = (
    "This process is a standby, and only the gauge knows this: ask the process of the role gauge"
    " whose /activez answers 200."
)
"""The answer to what only the gauge of a cluster has in memory."""
NOT_A_GAUGE = (
    "This process is not a gauge, and only a gauge has the API: ask the process of the role gauge"
    " whose /activez answers 200."
)
"""The answer of gateways and scorers to everything."""
_RETRY = {"retry-after": "5"}

ModelT = TypeVar("ModelT", bound=BaseModel)


class ProblemError(Exception):
    """The request cannot be answered."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


EXPECTED = (ProblemError, StoreError)
"""The errors that a request may cause."""


def response(error: ProblemError) -> Response:
    """The answer for an error."""
    body = Problem(title=HTTPStatus(error.status).phrase, status=error.status, detail=error.detail)
    return Response(
        body.model_dump_json(),
        error.status,
        {"cache-control": "no-store", **error.headers},
        media_type="application/problem+json",
    )


async def answered(work: Awaitable[Response]) -> Response:
    """The answer of `work`, or that for its error."""
    try:
        return await work
    except EXPECTED as error:
        return response(problem_of(error))


def problem_of(error: Exception) -> ProblemError:
    """What a client is told of one of the `EXPECTED` errors. It names no path of the collector."""
    match error:
        case ProblemError():
            return error
        case AmbiguousTraceError():
            return ProblemError(409, str(error))
        case QueryTooSlowError():
            return ProblemError(503, "The query takes too long; ask for less.", _RETRY)
    return ProblemError(503, "The store cannot be read now; try again.", _RETRY)


def checked(model: type[ModelT], given: Mapping[str, object]) -> ModelT:
    """The parameters or fields of a request. Raises `ProblemError`, which says of each that is not
    valid what was expected. Elsewhere, a `ValidationError` is no mistake of a client.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise ProblemError(422, "; ".join(_told(model, error))) from error


def _told(model: type[BaseModel], error: ValidationError) -> Iterator[str]:
    """Each mistake. Only the first unknown name is told which ones are known: a request may have
    thousands.
    """
    known = [field.alias or name for name, field in model.model_fields.items()]
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(map(str, one["loc"]))
        text = one["msg"]
        if one["type"] == "missing":
            text = "found nothing, expected a value"
        elif one["type"] == "extra_forbidden" and len(one["loc"]) == 1:
            text = "found an unknown name"
            if known:
                text += f", expected one of {', '.join(known)}{did_you_mean(place, known)}"
            known = []
        yield f"{place}: {text}" if place else text
