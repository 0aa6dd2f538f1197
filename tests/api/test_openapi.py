"""The API does what its OpenAPI document says, whatever is asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from pathgauge.collector.api.endpoints import ENDPOINTS, PREFIX
from support.api_client import client, sources
from support.evaluated import commit, evaluation, opened
from support.examples import examples

pytestmark = pytest.mark.slow

_ACCEPTANCE: list[schemathesis.CheckFunction] = [positive_data_acceptance]


@cache
def folder() -> Path:
    found = Path(mkdtemp())
    with opened(found) as store:
        commit(store, [evaluation("a"), evaluation("b", "passed")])
    return found


schema = schemathesis.openapi.from_asgi(f"{PREFIX}/openapi.json", client(sources(folder())).app)


@schema.parametrize()
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_agrees_with_the_document(case: schemathesis.Case[Any]) -> None:
    contradict = parameters_contradict(case.path, case.query or {})
    case.call_and_validate(excluded_checks=_ACCEPTANCE if contradict else None)


def parameters_contradict(path: str, query: Mapping[str, Any]) -> bool:
    """Whether parameters do not fit together, which the schema of a single one cannot say."""
    match path.removeprefix(PREFIX):
        case "/verdict":
            return query.get("version") == query.get("against") is not None
        case "/feedback":
            return ("trace_id" in query) == ("conversation_id" in query)
        case _:
            return False


def test_every_endpoint_is_in_the_document() -> None:
    document = client(sources(None)).get(f"{PREFIX}/openapi.json").json()
    assert set(document["paths"]) == {one.path for one in ENDPOINTS}
