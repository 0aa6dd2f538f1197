"""Criteria that lack an option without which there is no score are mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector import config
from pathgauge.collector.config.active import resolve
from pathgauge.collector.core.documents import ConfigError

MISSING = {
    "has_matching_span": "query",
    "allowed_tools": "tools",
    "skill_invoked": "skills",
    "tool_policy": "rules",
    "response_length": "limit",
}


def resolved(folder: Path, criteria: dict[str, Any], own: dict[str, Any]) -> object:
    reference = {"scenario": "s", "response_contains": ["x"], "criteria": own}
    (folder / "references.yaml").write_text(json.dumps([reference]))
    path = folder / "pathgauge.yaml"
    path.write_text(json.dumps({"references": ["references.yaml"], "criteria": criteria}))
    return resolve(config.load(path))


@pytest.mark.parametrize("name", MISSING)
def test_a_criterion_that_can_never_have_a_score_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(tmp_path, {name: 1}, {})
    [problem] = caught.value.problems
    assert problem.text == f"found no {MISSING[name]}, without which there is never a score"
    assert problem.path == ("criteria", name)


def test_a_scenario_may_give_the_option(tmp_path: Path) -> None:
    own = {"allowed_tools": {"tools": ["find"]}}
    assert resolved(tmp_path, {"allowed_tools": 1}, own)
