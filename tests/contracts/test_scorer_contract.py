"""Every scorer that is installed keeps the contract of scorers; a new one is tested for nothing."""

import json
from dataclasses import MISSING, fields
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pytest
from pydantic import TypeAdapter

import scorers
from scorers.testing import check_scorer
from scorers.types import Scorer

REGISTERED = sorted(entry_points(group="pathgauge.scorers"), key=lambda entry: entry.name)
REQUIRED_TEXT = "search"


def built(entry: EntryPoint) -> Scorer:
    """The scorer with its default options, and a text for those without default."""
    kind = entry.load()
    required = {field.name: REQUIRED_TEXT for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING}
    scorer: Scorer = kind(**required)
    return scorer


@pytest.mark.parametrize("entry", REGISTERED, ids=lambda entry: entry.name)
def test_a_registered_scorer_keeps_the_contract(entry: EntryPoint) -> None:
    check_scorer(built(entry))


@pytest.mark.parametrize("entry", REGISTERED, ids=lambda entry: entry.name)
def test_a_scorer_is_registered_under_its_own_name(entry: EntryPoint) -> None:
    assert built(entry).name == entry.name


@pytest.mark.parametrize("entry", REGISTERED, ids=lambda entry: entry.name)
def test_options_survive_the_way_through_a_configuration_file(entry: EntryPoint) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(entry.load())
    scorer = built(entry)
    assert adapter.validate_python(json.loads(adapter.dump_json(scorer)), extra="forbid") == scorer


def test_the_scorers_of_this_package_are_registered() -> None:
    classes = {getattr(scorers, name) for name in scorers.__all__}
    own = {kind for kind in classes if isinstance(kind, type) and "score" in dir(kind) and kind is not Scorer}
    assert {entry.load() for entry in REGISTERED if entry.value.startswith("scorers.")} == own
