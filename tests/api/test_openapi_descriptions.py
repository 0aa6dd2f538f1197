"""The OpenAPI document says of parameters and fields what their docstrings say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import pytest

from pathgauge.collector.api.endpoints import PREFIX
from support.api_client import client, sources

SCHEMAS = ("components", "schemas")


@pytest.fixture(scope="module")
def document() -> Any:
    return client(sources(None)).get(f"{PREFIX}/openapi.json").json()


@pytest.mark.parametrize(
    ("path", "description"),
    [
        ((*SCHEMAS, "Criterion", "properties", "reason"), "Why there is no value."),
        (
            (*SCHEMAS, "Given", "properties", "rater"),
            "Who gave the answer: their newest answer replaces earlier ones. Only a pseudonym is"
            " stored. Answers without a rater count as those of one person.",
        ),
        (
            ("paths", "/results", "get", "parameters", "until", "schema"),
            "Only what was stored before this time.",
        ),
        ((*SCHEMAS, "Criterion"), "What one criterion said about an invocation."),
    ],
)
def test_fields_and_parameters_are_described(
    document: Any, path: Sequence[str], description: str
) -> None:
    assert reduce(member, path, document)["description"] == description


def member(parent: Any, name: str) -> Any:
    if isinstance(parent, list):
        return next(one for one in parent if one["name"] == name)
    return parent[name]


def test_a_field_without_docstring_has_no_description(document: Any) -> None:
    assert "description" not in document["components"]["schemas"]["Criterion"]["properties"]["name"]
