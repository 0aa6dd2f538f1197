"""The installed entry points are those of pyproject.toml, and each one is a plug-in of its kind."""

from __future__ import annotations

import tomllib
from importlib.metadata import entry_points
from typing import Any

import pytest

from pathgauge.collector.config.plugins.dialects import DIALECTS
from pathgauge.collector.config.plugins.formats import FORMATS
from pathgauge.collector.config.plugins.registry import PluginRegistry
from pathgauge.collector.config.plugins.scorers import SCORERS, scorer_class
from pathgauge.collector.config.plugins.sinks import SINKS
from support.repository import ROOT

DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
KINDS: list[PluginRegistry[Any]] = [SCORERS, DIALECTS, SINKS, FORMATS]
REINSTALL = (
    "pyproject.toml declares other plug-ins than are installed: run `make clean test`, or"
    " `.venv/bin/python -m pip install --no-deps --no-build-isolation -e .`"
)


def test_every_group_of_pyproject_is_a_kind_of_plug_in() -> None:
    assert sorted(DECLARED.keys() - {"pytest11"}) == sorted(kind.group for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_the_installed_plug_ins_are_those_of_pyproject(kind: PluginRegistry[Any]) -> None:
    installed = {
        point.name: point.value
        for point in entry_points(group=kind.group)
        if point.dist is not None and point.dist.name == "pathgauge"
    }
    assert installed == DECLARED[kind.group], REINSTALL


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_plug_in_loads_and_has_the_type_of_its_kind(kind: PluginRegistry[Any]) -> None:
    assert kind.all().keys() >= DECLARED[kind.group].keys()


@pytest.mark.parametrize("name", DECLARED["pathgauge.scorers"])
def test_a_scorer_is_found_by_its_name(name: str) -> None:
    assert scorer_class(name).name == name
