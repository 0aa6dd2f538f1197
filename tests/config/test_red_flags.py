"""The red flags of docs/configuration.md have thresholds on the right side."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.config import active
from pathgauge.collector.core.evaluations.evaluator import Verdict
from support.repository import DOCS

PAGE = (DOCS / "configuration.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("criterion", "mean", "verdict"),
    [
        ("tool_selection_accuracy", 0.8, "passed"),
        ("tool_selection_accuracy", 0.79, "failed"),
        ("context_overflow", 0.05, "passed"),
        ("context_overflow", 0.06, "failed"),
        ("scenario_pass_rate", 0.9, "passed"),
        ("scenario_pass_rate", 0.89, "failed"),
        ("latency", 60, "passed"),
        ("latency", 61, "failed"),
        ("escalation_rate", 0.15, "passed"),
        ("escalation_rate", 0.16, "failed"),
    ],
)
def test_a_mean_on_the_wrong_side_of_its_threshold_is_a_breach(
    criterion: str, mean: float, verdict: Verdict, tmp_path: Path
) -> None:
    (block,) = re.findall(r"^### Red flags$.*?^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    file = tmp_path / "pathgauge.yaml"
    file.write_text(block, encoding="utf-8")
    judged = {one.name: one for one in active.resolve(config.load(file, {})).evaluator.criteria}
    assert judged[criterion].verdict(mean) == verdict
