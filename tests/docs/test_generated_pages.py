"""What is generated in the documentation is what the code says, and what it names can be built."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml

from pathgauge.collector.config.criteria import Location, build
from pathgauge.collector.core.documents import Document
from support.repository import DOCS

KNOWN = [
    (known["from"], name)
    for known in yaml.safe_load((DOCS / "known-names.yaml").read_text())
    for name in known["names"]
]


@cache
def generator() -> Any:
    spec = spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["generate"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def pages() -> Mapping[Path, str]:
    written: Mapping[Path, str] = generator().pages()
    return written


@pytest.mark.parametrize("name", ["catalogue.md", "dialects.md", "scorers.md"])
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text() == pages()[DOCS / name], (
        f"docs/{name} is out of date: run `make docs`"
    )


@pytest.mark.parametrize(
    ("source", "name"), KNOWN, ids=lambda value: value if isinstance(value, str) else value["name"]
)
def test_a_name_known_from_elsewhere_is_a_criterion_that_can_be_built(
    source: str, name: dict[str, Any]
) -> None:
    if not name.get("custom"):  # whose function is the reader's
        build(name["criterion"], Location(Document("known-names.yaml", None), ("criteria",)))


def test_every_group_of_scorers_has_a_heading() -> None:
    packages = {point.value.split(".")[2] for point in entry_points(group="pathgauge.scorers")}
    assert packages == set(generator().GROUPS)
