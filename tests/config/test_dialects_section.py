"""The section `dialects`: mistakes in the tables of in-house frameworks."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.core.documents import ConfigError

TABLE = "{scopes: [acme], names: {run: agent}}"


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (
            f"litellm: {TABLE}",
            "2:3: dialects.litellm: found the name of an installed dialect, expected another one",
        ),
        (
            f"unknown: {TABLE}",
            "2:3: dialects.unknown: found the name of an installed dialect, expected another one",
        ),
        ("acme: {scopes: [acme]}", "found neither kinds nor names, so that no span would be read"),
        (
            "acme: {scopes: [acme], kinds: {run: agent}}",
            "found kinds without kind, the attribute with their values",
        ),
        (
            "acme: {scopes: [acme], names: {run: agent}, fields: {zzz: a}}",
            "fields: found zzz, which no dialect has; the fields are agent_name, agent_version,",
        ),
        (
            "acme: {scopes: [acme], names: {run: agent}, fields: {tool_nam: a}}",
            "fields: found tool_nam, which no dialect has; did you mean 'tool_name'?",
        ),
    ],
)
def test_a_mistake_stops_the_start(section: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "pathgauge.yaml"
    file.write_text(f"dialects:\n  {section}\n")
    with pytest.raises(ConfigError) as caught:
        config.load(file)
    assert expected in str(caught.value)


def test_a_table_with_a_name_of_its_own_is_a_dialect(tmp_path: Path) -> None:
    file = tmp_path / "pathgauge.yaml"
    file.write_text(f"dialects:\n  acme: {TABLE}\n")
    assert config.load(file).dialects["acme"].scopes == ("acme",)
