"""Errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from http import HTTPStatus

from pydantic import ValidationError
from starlette.responses import Response

from pathgauge.collector.api.models import Problem
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.queries.reading import QueryTooSlowError
from pathgauge.collector.store.queries.traces import AmbiguousTraceError


class ProblemError(Exception):
    """The request cannot be answered."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


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
    except ProblemError as error:
        return response(error)
    except ValidationError as error:
        return response(invalid(error))
    except AmbiguousTraceError as error:
        return response(ProblemError(409, str(error)))
    except QueryTooSlowError:
        return response(
            ProblemError(503, "the query takes too long; ask for less", {"retry-after": "5"})
        )
    except StoreError:
        return response(
            ProblemError(503, "the store cannot be read now; try again", {"retry-after": "5"})
        )


def invalid(error: ValidationError) -> ProblemError:
    """The problem of parameters that are not valid: each with what was expected."""
    found = "; ".join(
        f"{'.'.join(map(str, one['loc']))}: {one['msg']}"
        for one in error.errors(include_url=False, include_input=False, include_context=False)
    )
    return ProblemError(422, found)
