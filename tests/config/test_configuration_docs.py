"""docs/configuration.md has exactly the keys and defaults of the models, and its examples work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from pathgauge.collector import config
from pathgauge.collector.config import Config, active
from pathgauge.collector.config.exporters import Exporters
from pathgauge.collector.core.documents import yaml_source
from pathgauge.scorers.types import Json
from support.repository import ROOT

DOCS = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([a-z_.<>]+)` \| (?:`(.+?)`)? *\|", DOCS, re.MULTILINE))
EXAMPLES = re.findall(r"^```(?:yaml|json)\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    model = Exporters.with_sections() if model is Exporters else model
    for name, field in model.model_fields.items():
        kinds: list[Any] = [field.annotation, *get_args(field.annotation)]
        section = next(
            (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None
        )
        if section is None:
            yield f"{prefix}{name}"
        elif section is config.Tls:  # the same for all servers
            yield from keys(section, "tls.")
        else:
            yield from keys(
                section,
                f"{prefix}{name}.<name>."
                if get_origin(field.annotation) is dict
                else f"{prefix}{name}.",
            )


def test_the_docs_have_every_key_and_no_other() -> None:
    assert sorted(ROWS) == sorted(set(keys(Config)))


@pytest.mark.parametrize(
    ("key", "default"),
    [
        row
        for row in ROWS.items()
        if not row[0].startswith(
            (
                "auth.",
                "canary.",
                "dialects.",
                "exporters.otlp.",
                "judge.",
                "kafka.",
                "postgres.",
                "prices.",
                "redaction.",
                "shadow.",
                "tls.",
            )
        )
    ],
)
def test_the_docs_have_the_defaults(key: str, default: str) -> None:
    (document,) = yaml_source.read(default or "null", "docs")
    data: Json = document.data
    for step in reversed(key.split(".")):
        data = {step: data}
    assert Config.model_validate(data) == Config()


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_in_the_docs_work(text: str, tmp_path: Path) -> None:
    file = tmp_path / "pathgauge.yaml"
    file.write_text(text, encoding="utf-8")
    active.resolve(config.load(file, {"OPENAI_API_KEY": "sk-0123"}))


def test_the_example_file_works_without_a_warning() -> None:
    resolved = active.resolve(config.load(ROOT / "examples" / "pathgauge.yaml", {}))
    assert sorted(reference.scenario_id for reference in resolved.references) == [
        "book_trip",
        "opening_hours",
        "refund_damaged",
    ]
    assert resolved.warnings == ()
