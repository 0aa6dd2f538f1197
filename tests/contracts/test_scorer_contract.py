"""Every scorer that is installed keeps the contract of scorers; a new one is tested for nothing."""

import json
from dataclasses import MISSING, fields
from importlib.metadata import EntryPoint, entry_points
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

import pathgauge
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.authoring.judge_contract import check_judge
from pathgauge.scorers.judge_protocol import Judge, asks_model
from pathgauge.scorers.types import Scorer
from support.scripted_models import FirstFittingAnswer

REGISTERED = sorted(entry_points(group="pathgauge.scorers"), key=lambda entry: entry.name)
JUDGES = [entry for entry in REGISTERED if entry.value.startswith("pathgauge.scorers.judges.")]
REQUIRED: dict[str, Any] = {
    "criteria": {"polite": "Is it polite?"},
    "rating_rubric": {1: "polite", 0: "rude"},
    "rubrics": ("The answer is polite.", "The answer is short."),
}
"""Options without a default that are no text, and those without which there is nothing to judge."""
REQUIRED_TEXT = "search"


def built(entry: EntryPoint) -> Scorer:
    """The scorer with its default options, and a value for those without default."""
    kind = entry.load()
    required = [
        field.name
        for field in fields(kind)
        if (field.default is MISSING and field.default_factory is MISSING) or field.name in REQUIRED
    ]
    scorer: Scorer = kind(**{name: REQUIRED.get(name, REQUIRED_TEXT) for name in required})
    return scorer


@pytest.mark.parametrize("entry", REGISTERED, ids=lambda entry: entry.name)
def test_a_registered_scorer_keeps_the_contract(entry: EntryPoint) -> None:
    check_scorer(built(entry))


@pytest.mark.parametrize("entry", JUDGES, ids=lambda entry: entry.name)
async def test_a_registered_judge_keeps_the_contract_of_judges(entry: EntryPoint) -> None:
    judge, ask = built(entry), FirstFittingAnswer()
    assert asks_model(judge)
    await check_judge(judge, ask)
    assert ask.questions


@pytest.mark.parametrize("entry", REGISTERED, ids=lambda entry: entry.name)
def test_a_scorer_is_registered_under_its_own_name(entry: EntryPoint) -> None:
    assert built(entry).name == entry.name


@pytest.mark.parametrize("entry", REGISTERED, ids=lambda entry: entry.name)
def test_options_survive_the_way_through_a_configuration_file(entry: EntryPoint) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(entry.load())
    scorer = built(entry)
    assert adapter.validate_python(json.loads(adapter.dump_json(scorer)), extra="forbid") == scorer


def test_the_scorers_of_this_package_are_registered() -> None:
    classes = {getattr(pathgauge, name) for name in pathgauge.__all__}
    own = {
        kind
        for kind in classes
        if isinstance(kind, type) and "score" in dir(kind) and kind not in {Scorer, Judge}
    }
    assert {entry.load() for entry in REGISTERED if entry.value.startswith("pathgauge.")} == own


def lists_of_texts() -> list[Any]:
    return [
        pytest.param(entry, name, id=f"{entry.name}.{name}")
        for entry in REGISTERED
        for name, hint in get_type_hints(entry.load()).items()
        if hint in (tuple[str, ...], tuple[str, ...] | None)
        if name in {field.name for field in fields(entry.load()) if field.init}
    ]


@pytest.mark.parametrize(("entry", "option"), lists_of_texts())
def test_a_text_in_place_of_a_list_of_texts_is_refused(entry: EntryPoint, option: str) -> None:
    """It would be read by letter: `ForbiddenTools("delete")` would pass whatever is called."""
    scorer = built(entry)
    options = {field.name: getattr(scorer, field.name) for field in fields(entry.load())}
    with pytest.raises(ValueError, match=rf"^{option}: found 'search', expected a list of texts$"):
        entry.load()(**{**options, option: "search"})
