"""docs/references.md tells the truth: every key of the native format is there, no other is, and the examples work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from collector.documents import ConfigError, yaml_source
from collector.references import formats

DOCS = (Path(__file__).parents[2] / "docs" / "references.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)
KEYS = dict.fromkeys(re.findall(r"^\| `([a-z_]+)` \| (?:scenario|turn|tool call) \|", DOCS, re.MULTILINE))


def known_keys(text: str) -> set[str]:
    """The keys that the format itself names beside an unknown one."""
    with pytest.raises(ConfigError) as caught:
        formats.load(yaml_source.read(text, "r.yaml")[0])
    return set(re.findall(r"expected one of ([a-z_, ]+)", str(caught.value))[0].split(", "))


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_in_the_docs_work(text: str) -> None:
    (document,) = yaml_source.read(text, "docs")
    assert len(formats.load(document)) == 1


def test_the_docs_have_every_key_and_no_other() -> None:
    scenario = known_keys("scenario: s\nunknown: 1")
    call = known_keys("scenario: s\nexpected_tools: [{name: a, unknown: 1}]")
    assert set(KEYS) == scenario | call
