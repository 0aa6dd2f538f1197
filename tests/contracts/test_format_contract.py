"""What every reference format promises.

A new format is found by its entry point. It needs a file in tests/golden/references.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge import ConfigError, Document, Format, Json
from pathgauge.collector.config import reference_files
from pathgauge.collector.config.plugins.formats import installed_formats
from pathgauge.collector.core.documents import KeyPath, json_source
from pathgauge.collector.core.references.export_native import to_yaml
from pathgauge.collector.core.references.importing import gather
from support.repository import DOCS, REFERENCE_FILES

PAGE = (DOCS / "adding-a-reference-format.md").read_text()
MISSING = object()
ANYTHING: tuple[Json, ...] = (MISSING, None, True, 5, "", "text", [], [[]], {}, {"name": None})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


def example(language: str, number: int = 0) -> str:
    """A code block of the page for people who add a format."""
    blocks = re.finditer(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return [block[1] for block in blocks][number]


def documented_format() -> Format:
    """The format that the page adds."""
    names: dict[str, Any] = {"__name__": "documented"}
    exec(example("python"), names)
    found: Format = names["ACME"]
    return found


INSTALLED = installed_formats()
FORMATS = {"acme": documented_format(), **INSTALLED}


def documents(name: str) -> list[Document]:
    """The golden documents that are in this format."""
    if name == "acme":
        return [json_source.read(example("json"), "acme_suite.json")]
    return [
        document
        for file in sorted(REFERENCE_FILES.iterdir())
        for document in reference_files.read_documents(file)
        if next(key for key, known in INSTALLED.items() if known.recognises(document.data)) == name
    ]


def paths(data: Json, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The paths of all values."""
    yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from paths(value, (*path, key))
    if isinstance(data, list):
        for index, value in enumerate(data):
            yield from paths(value, (*path, index))


def damaged(data: Json, path: KeyPath, value: Json) -> Json:
    """The data with another value, or `MISSING`, at `path`."""
    if not path:
        return value
    copy = deepcopy(data)
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    if value is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return copy


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_title_keys_and_a_golden_file(name: str) -> None:
    assert FORMATS[name].title
    assert FORMATS[name].keys
    assert documents(name)


@pytest.mark.parametrize("name", FORMATS)
def test_references_have_distinct_scenario_ids_turns_and_positions(name: str) -> None:
    for document in documents(name):
        loaded = FORMATS[name].load(document)
        scenario_ids = [reference.scenario_id for _, reference in loaded.references]
        assert scenario_ids
        assert len(set(scenario_ids)) == len(scenario_ids)
        for path, reference in loaded.references:
            assert reference.turns
            assert loaded.document.position(path) is not None


@pytest.mark.parametrize("name", FORMATS)
@settings(deadline=None)
@given(data=JSON)
def test_any_data_is_recognised_or_not_without_an_error(name: str, data: Json) -> None:
    assert FORMATS[name].recognises(data) in (True, False)


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_document_is_loaded_or_refused(name: str) -> None:
    known = FORMATS[name]
    for document in documents(name):
        for path in paths(document.data):
            for value in ANYTHING:
                data = damaged(document.data, path, value)
                if known.recognises(data):
                    with suppress(ConfigError):
                        known.load(replace(document, data=data))


def test_the_example_of_the_page_is_imported_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_files, "installed_formats", lambda: FORMATS)
    monkeypatch.chdir(tmp_path)
    file = Path("acme_suite.json")
    file.write_text(example("json"))
    imported = gather(reference_files.read_all([file]))
    output = to_yaml(imported.references)
    output += "".join(f"pathgauge: {line}\n" for line in imported.summary)
    assert example("console").partition("acme_suite.json\n")[2] == output

    file.write_text(example("json").replace(json.dumps("My parcel is broken."), "5"))
    with pytest.raises(ConfigError) as caught:
        reference_files.read_all([file])
    assert example("console", 1).partition("acme_suite.json\n")[2] == f"pathgauge: {caught.value}\n"
