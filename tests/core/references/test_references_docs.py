"""docs/references.md lists exactly the keys of the native format, and its examples work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pathgauge.collector.config import reference_files
from pathgauge.collector.config.plugins.formats import installed_formats
from pathgauge.collector.core.documents import ConfigError, yaml_source
from pathgauge.collector.core.references import formats
from pathgauge.scorers.matching import matchers
from support.repository import ROOT

DOCS = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```(yaml|json|jsonl|csv)\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)
MATCHERS = re.findall(r"^\| `(\{\$.*?\})` \|", DOCS, re.MULTILINE)
KEYS = dict.fromkeys(
    re.findall(r"^\| `([a-z_]+)` \| (?:scenario|turn|tool call) \|", DOCS, re.MULTILINE)
)


def known_keys(text: str) -> set[str]:
    """The keys that the error message for an unknown key lists."""
    with pytest.raises(ConfigError) as caught:
        formats.load(yaml_source.read(text, "r.yaml")[0], installed_formats())
    return set(re.findall(r"expected one of ([a-z_, ]+)", str(caught.value))[0].split(", "))


@pytest.mark.parametrize(("suffix", "text"), EXAMPLES)
def test_the_examples_in_the_docs_work(suffix: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / f"example.{suffix}"
    file.write_text(text, encoding="utf-8")
    read = reference_files.read(file)
    assert (len(read.entries), len(read.entries[0].reference.turns) > 0) == (1, True)


def test_every_format_has_an_example() -> None:
    assert [suffix for suffix, _ in EXAMPLES] == [
        "yaml",
        "yaml",
        "yaml",
        "jsonl",
        "csv",
        "json",
        "jsonl",
        "json",
    ]


def test_every_matcher_is_in_the_docs_and_no_other() -> None:
    names = {next(iter(yaml_source.read(text, "docs")[0].data)) for text in MATCHERS}
    with pytest.raises(ValueError, match="unknown key") as caught:
        matchers.read({"$unknown": 1})
    assert names == set(re.findall(r"\$\w+", str(caught.value).partition("expected")[2]))
    for text in MATCHERS:
        matchers.read(yaml_source.read(text, "docs")[0].data)


@pytest.mark.parametrize(
    "file", sorted((ROOT / "examples" / "references").iterdir()), ids=lambda file: file.name
)
def test_the_files_in_examples_work(file: Path) -> None:
    assert reference_files.read(file).entries


def test_the_docs_have_every_key_and_no_other() -> None:
    scenario = known_keys("scenario: s\nunknown: 1")
    call = known_keys("scenario: s\nexpected_tools: [{name: a, unknown: 1}]")
    assert set(KEYS) == scenario | call
