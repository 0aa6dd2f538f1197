"""The pages about scorers give the limits and reasons that are in force, and their examples run."""

import re
from textwrap import dedent
from typing import Any, get_args

import pytest

import pathgauge
from pathgauge import Reason
from pathgauge.scorers.matching import (
    argument_rules,
    bipartite,
    partial_order,
    value_matchers,
)
from pathgauge.scorers.matching.comparison import MAX_CALLS
from pathgauge.scorers.tool_use import argument_schemas
from support.repository import DOCS

CATALOGUE = (DOCS / "scorers.md").read_text()
GUIDE = (DOCS / "writing-a-scorer.md").read_text()
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_reason_for_a_missing_value_is_explained() -> None:
    table = CATALOGUE.split("## No value is not zero")[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \| ", table, re.MULTILINE)) == sorted(get_args(Reason))


def test_limits_are_the_ones_in_force() -> None:
    assert f"more than {MAX_CALLS:,} calls" in CATALOGUE
    assert f"{bipartite.MAX_STEPS:,} steps of the search" in CATALOGUE
    assert f"cost more than {argument_rules.MAX_COST // 2:,} of single numbers" in CATALOGUE
    assert f"{partial_order.MAX_STEPS:,} steps, which is enough" in CATALOGUE
    assert f"Patterns of up to {value_matchers.MAX_PATTERN:,} characters" in CATALOGUE
    assert f"text of up to {value_matchers.MAX_TEXT:,} characters" in CATALOGUE
    assert f"longer than {argument_schemas.MAX_SCHEMA:,} characters" in CATALOGUE


@pytest.mark.parametrize("page", [CATALOGUE, GUIDE], ids=["scorers.md", "writing-a-scorer.md"])
def test_examples_run(page: str) -> None:
    assert FENCE.findall(page)
    for example in FENCE.findall(page):
        exec(compile(example, "<example>", "exec"), {"__name__": "example"})


def test_the_example_of_the_package_runs() -> None:
    assert pathgauge.__doc__ is not None
    names: dict[str, Any] = {}
    exec(dedent(pathgauge.__doc__.split("\n\n", 1)[1].rsplit("\n\n", 1)[0]), names)
    assert names["ToolTrajectoryF1"]().score(names["actual"], names["expected"]).value == 0.8
