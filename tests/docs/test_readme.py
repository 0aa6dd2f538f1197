"""A reader who copies from the README gets what it promises."""

import re
import tomllib
from pathlib import Path

from pathgauge.collector import config
from pathgauge.collector.config import active
from support.repository import ROOT

README = (ROOT / "README.md").read_text()
FILES = re.findall(r"`([\w/]+\.yaml)`:\n```yaml\n(.*?)```", README, re.DOTALL)
SCORERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
    "pathgauge.scorers"
]


def test_the_configuration_and_the_reference_work_together(tmp_path: Path) -> None:
    for name, text in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    in_force = active.resolve(config.load(tmp_path / "pathgauge.yaml"))
    assert [reference.scenario_id for reference in in_force.references] == ["refund_damaged"]
    assert [criterion.name for criterion in in_force.evaluator.criteria] == [
        "tool_trajectory_avg_score",
        "response_match_score",
    ]
    assert in_force.warnings == ()


def test_everything_that_the_table_calls_a_scorer_is_one() -> None:
    table = re.search(r"^\| about .*?\n\n", README, re.MULTILINE | re.DOTALL)
    assert table is not None
    assert set(re.findall(r"`(\w+)`", table.group())) < set(SCORERS)


def test_the_number_of_scorers_is_that_of_the_installed_ones() -> None:
    judges = [path for path in SCORERS.values() if path.startswith("pathgauge.scorers.judges.")]
    assert f"There are {len(SCORERS)} scorers. {len(judges)} of them ask a model;" in README
