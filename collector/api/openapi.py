"""The OpenAPI document, made from the list of endpoints and their models."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel, TypeAdapter

from pathgauge.collector.api.endpoints import ENDPOINTS, PREFIX, Endpoint
from pathgauge.collector.api.feedback_models import Given, Recorded
from pathgauge.collector.api.models import Problem
from pathgauge.collector.api.posting import PATH as FEEDBACK

_TEMPLATE = "#/components/schemas/{model}"


@cache
def document() -> bytes:
    """The document as JSON."""
    models: set[type[BaseModel]] = {
        Problem,
        Recorded,
        *(endpoint.model for endpoint in ENDPOINTS),
    }
    _, schemas = TypeAdapter.json_schemas(
        [
            *((model, "serialization", TypeAdapter(model)) for model in models),
            (Given, "validation", TypeAdapter(Given)),
        ],
        ref_template=_TEMPLATE,
    )
    paths = {endpoint.path: {"get": _operation(endpoint)} for endpoint in ENDPOINTS}
    paths[FEEDBACK]["post"] = _posting()
    found = {
        "openapi": "3.1.0",
        "info": {
            "title": "pathgauge",
            "version": "1",
            "description": "Results of agent invocations, what explains them, and what people say"
            " of them.",
        },
        "servers": [{"url": PREFIX}],
        "security": [{"bearer": []}, {}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
    return orjson.dumps(found)


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", endpoint.path)
    errors = {
        "401": "No valid token",
        "403": "Another tenant than that of the token, or an unknown host name",
        "404": "Not stored",
        "409": "Several tenants have it, or no results are kept",
        "422": "Invalid parameters",
        "503": "Busy: try again; or a standby, which does not know this",
    }
    return {
        "operationId": re.sub(r"\W+", "_", endpoint.path).strip("_"),
        "summary": endpoint.summary,
        "parameters": [*map(_path_parameter, names), *_query_parameters(endpoint)],
        "responses": {
            "200": _response(endpoint.summary, endpoint.model.__name__, "application/json"),
            "304": {"description": "Not modified"},
            **{
                status: _response(description, Problem.__name__, "application/problem+json")
                for status, description in errors.items()
            },
        },
    }


def _posting() -> dict[str, Any]:
    problems = {
        "401": "No valid token",
        "403": "Another tenant than that of the token, or an unknown host name",
        "409": "Another answer has this id, or no feedback is taken",
        "410": "The trace was purged",
        "413": "The body is too large",
        "415": "The body is not application/json",
        "422": "Invalid fields",
        "503": "Busy, or the store cannot be written to: try again",
    }
    return {
        "operationId": "post_feedback",
        "summary": "Take what a person says of an invocation; answered when it is durable",
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": _TEMPLATE.format(model=Given.__name__)}}
            },
        },
        "responses": {
            "201": _response("A new answer", Recorded.__name__, "application/json"),
            "200": _response("A revised or repeated one", Recorded.__name__, "application/json"),
            **{
                status: _response(description, Problem.__name__, "application/problem+json")
                for status, description in problems.items()
            },
        },
    }


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    schema = endpoint.query.model_json_schema()
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(one)}
        for name, one in schema.get("properties", {}).items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter is absent instead of null."""
    kept = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    present = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    if len(present) == 1:
        return {**kept, **present[0]}
    return {**kept, "anyOf": present} if present else kept


def _response(description: str, model: str, media_type: str) -> dict[str, Any]:
    schema = {"$ref": _TEMPLATE.format(model=model)}
    return {"description": description, "content": {media_type: {"schema": schema}}}
