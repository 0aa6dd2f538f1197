"""Reference formats of other packages: found by their entry points, asked before the built-in ones,
and named when they fail.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathgauge.collector.cli import app
from pathgauge.collector.config import reference_files
from pathgauge.collector.core.documents import ConfigError
from support.packages import install

ACME = """
from pathgauge import Format, LoadedReferences, Reference, ReferenceTurn

KEYS = ("acme",)


def recognises(data):
    return isinstance(data, dict) and "acme" in data


def load(document):
    loaded = LoadedReferences(document)
    loaded.add(("acme",), Reference(document.data["acme"], (ReferenceTurn("x"),)))
    return loaded


WORKS = Format("Acme", KEYS, recognises, load)
FAILS_TO_RECOGNISE = Format("Acme", KEYS, lambda data: data["acme"] == "a", load)
FAILS_TO_LOAD = Format("Acme", KEYS, recognises, lambda document: document.data["gone"])
LOADS_NOTHING = Format("Acme", KEYS, recognises, lambda document: None)
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where packages are installed; `acme_format` is a module there."""
    (tmp_path / "acme_format.py").write_text(ACME)
    (tmp_path / "tests.yaml").write_text("acme: a\n")
    (tmp_path / "other.yaml").write_text("scenario: other\nexpected_tools: []\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme_format", raising=False)
    return tmp_path


def test_a_format_of_another_package_loads_its_files_beside_the_others(acme: Path) -> None:
    install(acme, "formats", acme="acme_format:WORKS")
    loaded = reference_files.load(["tests.yaml", "other.yaml"], acme)
    assert [entry.reference.scenario_id for entry in loaded.entries] == ["a", "other"]


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("FAILS_TO_RECOGNISE", "other.yaml", "KeyError: 'acme'"),
        ("FAILS_TO_LOAD", "tests.yaml", "KeyError: 'gone'"),
        (
            "LOADS_NOTHING",
            "tests.yaml",
            "TypeError: load returned NoneType, expected LoadedReferences",
        ),
    ],
)
def test_a_format_that_fails_is_a_mistake_with_its_name_and_that_of_the_file(
    acme: Path, name: str, file: str, message: str
) -> None:
    install(acme, "formats", acme=f"acme_format:{name}")
    message = f"{acme / file}:1:1: the format Acme failed: {message}"
    with pytest.raises(ConfigError) as caught:
        reference_files.load([file], acme)
    assert str(caught.value) == message
    refused = CliRunner().invoke(app, ["import", "auto", str(acme / file)])
    assert (refused.exit_code, refused.stderr) == (2, f"pathgauge: {message}\n")
