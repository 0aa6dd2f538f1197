"""The API does what its OpenAPI document says, whatever is asked."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from pathgauge.collector.api.endpoints import ENDPOINTS, PREFIX
from support.api_client import client, sources
from support.evaluated import commit, evaluation, opened
from support.examples import examples

pytestmark = pytest.mark.slow


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
    case.call_and_validate()


def test_every_endpoint_is_in_the_document() -> None:
    document = client(sources(None)).get(f"{PREFIX}/openapi.json").json()
    assert set(document["paths"]) == {one.path for one in ENDPOINTS}
