"""Which errors are told to a client as its own mistake."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from starlette.responses import Response

from pathgauge.collector.api.models import Problem
from pathgauge.collector.api.problems import answered, checked
from pathgauge.collector.api.queries import TraceQuery


async def test_parameters_that_are_not_valid_are_a_mistake_of_the_client() -> None:
    async def work() -> Response:
        checked(TraceQuery, {"tenant": "t" * 1001, "tenat": 1, "other": 1})
        return Response()

    answer = await answered(work())
    assert answer.status_code == 422
    assert Problem.model_validate_json(bytes(answer.body)).detail == (
        "tenant: String should have at most 1000 characters; tenat: found an unknown name, expected"
        " one of tenant; did you mean 'tenant'?; other: found an unknown name"
    )


async def test_an_answer_that_cannot_be_built_is_not() -> None:
    async def work() -> Response:
        return Response(Problem.model_validate({}).model_dump_json())

    with pytest.raises(ValidationError):
        await answered(work())
