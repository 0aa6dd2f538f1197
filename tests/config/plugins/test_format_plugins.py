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
from pathgauge import ExpectedCall, Format, LoadedReferences, Reference, ReferenceTurn

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


def adding(reference):
    def load(document):
        loaded = LoadedReferences(document)
        loaded.add(("acme",), reference)
        return loaded

    return Format("Acme", KEYS, recognises, load)


CALL = ExpectedCall("search")
ADDS_TEXT = adding("a")
ADDS_NO_ID = adding(Reference(None, (ReferenceTurn("x"),)))
ADDS_NO_TURN = adding(Reference("a", ()))
ADDS_A_LIST_OF_TURNS = adding(Reference("a", [ReferenceTurn("x")]))
ADDS_NAMES_OF_CALLS = adding(Reference("a", (ReferenceTurn("x", ("search",)),)))
ADDS_A_CALL_ALONE = adding(Reference("a", (ReferenceTurn("x", CALL),)))
ADDS_ONE_ALTERNATIVE = adding(Reference("a", (ReferenceTurn("x", (), alternatives=(CALL,)),)))
ADDS_FORBIDDEN_NAMES = adding(Reference("a", (ReferenceTurn("x", forbidden=("search",)),)))
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
        *(
            (f"ADDS_{name}", "tests.yaml", f"TypeError: {message}")
            for name, message in (
                ("TEXT", "reference: found str, expected Reference"),
                ("NO_ID", "scenario_id: found NoneType, expected str"),
                ("NO_TURN", "turns: found none, expected at least one"),
                ("A_LIST_OF_TURNS", "turns: found list, expected tuple"),
                ("NAMES_OF_CALLS", "tool_calls: found str, expected ExpectedCall"),
                ("A_CALL_ALONE", "tool_calls: found ExpectedCall, expected tuple"),
                ("ONE_ALTERNATIVE", "alternatives: found ExpectedCall, expected tuple"),
                ("FORBIDDEN_NAMES", "forbidden: found str, expected ExpectedCall"),
            )
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
