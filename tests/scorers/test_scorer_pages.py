"""The pages about scorers give the actual limits and reasons, and their examples run."""

import re
import sys
from collections.abc import Callable
from textwrap import dedent
from types import ModuleType
from typing import Any, get_args

import pytest

import pathgauge
from pathgauge import Reason, check_scorer
from pathgauge.collector.core.invocations import span_records
from pathgauge.scorers.matching import (
    argument_rules,
    bipartite,
    partial_order,
    patterns,
)
from pathgauge.scorers.matching.comparison import MAX_CALLS
from pathgauge.scorers.responses import response_pattern, value_sources
from pathgauge.scorers.tool_use import argument_schemas
from support.repository import DOCS

CATALOGUE = (DOCS / "scorers.md").read_text()
GUIDE = (DOCS / "adding-a-scorer.md").read_text()
FENCE = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def test_every_reason_for_a_missing_value_is_explained() -> None:
    table = CATALOGUE.split("## No value is not zero")[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \| ", table, re.MULTILINE)) == sorted(get_args(Reason))


def test_limits_on_the_page_are_those_of_the_code() -> None:
    text = " ".join(CATALOGUE.split())
    assert f"more than {MAX_CALLS:,} calls" in text
    assert f"{bipartite.MAX_STEPS:,} steps of the search" in text
    assert f"cost more than {argument_rules.MAX_COST // 2:,} of single numbers" in text
    assert f"{partial_order.MAX_STEPS:,} steps, which is enough" in text
    assert f"Patterns of up to {patterns.MAX_PATTERN:,} characters" in text
    assert f"text of up to {patterns.MAX_TEXT:,} characters" in text
    assert f"longer than {argument_schemas.MAX_SCHEMA:,} characters" in text
    assert f"A response of more than {response_pattern.MAX_RESPONSE:,} characters" in text
    assert f"no value with more than {value_sources.MAX_TEXT:,} characters of results" in text
    assert f"A value of more than {span_records.MAX_VALUE:,} characters" in text


@pytest.fixture(name="run")
def fixture_run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Executes an example as a module, and its tests."""

    def run(code: str, name: str = "example") -> ModuleType:
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(dedent(code), f"<{name}>", "exec"), vars(module))
        for attribute, test in list(vars(module).items()):
            if attribute.startswith("test_"):
                marks = getattr(test, "pytestmark", [])
                for arguments in marks[0].args[1] if marks else [()]:
                    test(*arguments)
        return module

    return run


def test_the_examples_of_the_scorers_page_run(run: Callable[..., ModuleType]) -> None:
    assert FENCE.findall(CATALOGUE)
    for example in FENCE.findall(CATALOGUE):
        run(example)


def test_the_examples_of_the_guide_run_together(
    run: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, tests, builtin, builtin_tests, *functions, of_sessions, judge, judge_tests = (
        FENCE.findall(GUIDE)
    )
    run(judge, "acme_judges")
    run(judge_tests)
    run(module, "acme_scorers")
    run(tests)
    scorer = run(builtin, "repeated_calls").RepeatedCalls
    monkeypatch.setattr(pathgauge, "RepeatedCalls", scorer, raising=False)
    check_scorer(scorer())
    run(builtin_tests)
    assert len(functions) == 3
    for example in functions:
        run(example)
    check_scorer(run(of_sessions, "handovers").Handovers())


def test_the_example_of_the_package_runs() -> None:
    assert pathgauge.__doc__ is not None
    names: dict[str, Any] = {}
    exec(dedent(pathgauge.__doc__.split("\n\n", 1)[1].rsplit("\n\n", 1)[0]), names)
    assert names["ToolTrajectoryF1"]().score(names["actual"], names["expected"]).value == 0.8
