"""The pages about scorers say what the registered scorers are, and their examples run."""

import re
from dataclasses import MISSING, Field, fields
from importlib.metadata import entry_points
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args, get_type_hints

import pytest

import scorers
from scorers import MatchType, Reason
from scorers.alignment import MAX_BLOCK, MAX_EDGES
from scorers.comparison import MAX_CALLS

DOCS = Path(__file__).parents[2] / "docs"
CATALOGUE = (DOCS / "scorers.md").read_text()
GUIDE = (DOCS / "writing-a-scorer.md").read_text()
OWN = [entry.load() for entry in sorted(entry_points(group="pathgauge.scorers")) if entry.value.startswith("scorers.")]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def row(scorer: Any) -> str:
    """The line of the table that describes a scorer."""
    limits = f"{scorer.low:g} to {'∞' if scorer.high == float('inf') else f'{scorer.high:g}'}"
    cells = [f"`{scorer.name}`", limits, "higher" if scorer.higher_is_better else "lower", "yes" if scorer.needs_reference else "no"]
    return f"| {' | '.join([*cells, ', '.join(map(option, fields(scorer)))])} |".replace("|  |", "| |")


def option(field: "Field[Any]") -> str:
    if field.default is MISSING:
        return f"`{field.name}` (required)"
    default = str(field.default).lower() if isinstance(field.default, bool) else field.default
    return f"`{field.name}: {default}`"


def test_the_table_lists_the_registered_scorers_as_they_are() -> None:
    table = CATALOGUE.split("|---|---|---|---|---|\n")[1].split("\n\n")[0].splitlines()
    assert table == [row(scorer) for scorer in OWN]


def test_every_option_with_its_choices_is_explained() -> None:
    explained = CATALOGUE.split("## Options")[1].split("\n## ")[0]
    for scorer in OWN:
        for field in fields(scorer):
            kind = get_type_hints(scorer)[field.name]
            choices = list(MatchType) if kind is MatchType else get_args(kind)
            assert [word for word in (f"- `{field.name}`:", *(f"`{choice}`" for choice in choices)) if word not in explained] == []


def test_every_reason_for_a_missing_value_is_explained() -> None:
    table = CATALOGUE.split("## No value is not zero")[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \| ", table, re.MULTILINE)) == sorted(get_args(Reason))


def test_limits_are_the_ones_in_force() -> None:
    assert f"more than {MAX_CALLS:,} calls" in CATALOGUE
    assert f"up to {MAX_BLOCK} on the smaller side and {MAX_EDGES:,} possible pairs" in CATALOGUE


@pytest.mark.parametrize("page", [CATALOGUE, GUIDE], ids=["scorers.md", "writing-a-scorer.md"])
def test_examples_run(page: str) -> None:
    assert FENCE.findall(page)
    for example in FENCE.findall(page):
        exec(compile(example, "<example>", "exec"), {"__name__": "example"})


def test_the_example_of_the_package_runs() -> None:
    assert scorers.__doc__ is not None
    names: dict[str, Any] = {}
    exec(dedent(scorers.__doc__.split("\n\n", 1)[1].rsplit("\n\n", 1)[0]), names)
    assert names["ToolTrajectoryF1"]().score(names["actual"], names["expected"]).value == 0.8
