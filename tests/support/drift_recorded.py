"""The scrapes of a course about drift as a unit test of promtool, which must see each alert of the
shipped rules fire at the same times as `drift_pages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric

from support.courses import named, written
from support.drift_course import SCRAPE_S
from support.drift_pages import Page
from support.promtool import rule_groups, run

STEP = int(SCRAPE_S // 60)
"""Minutes between two scrapes, and between two evaluations of the rules."""
_READ = "pathgauge_drift_"


class Recorded:
    """Give `scrape` to a course."""

    def __init__(self) -> None:
        self.firing: list[set[Page]] = []
        """At each scrape."""
        self._series: dict[str, list[float | None]] = {}

    def scrape(self, families: Sequence[Metric], firing: set[Page]) -> None:
        """Remember a scrape, and what it raises according to `drift_pages`."""
        for family in families:
            if not family.name.startswith(_READ):
                continue
            for sample in family.samples:
                values = self._series.setdefault(named(sample.name, **sample.labels), [])
                values += [None] * (len(self.firing) - len(values))
                values.append(sample.value)
        self.firing.append(set(firing))

    def promtool(self, folder: Path) -> str:
        """The complaints of promtool if its alerts differ, or `SUCCESS`."""
        groups = [group for group in rule_groups() if group["name"].startswith("pathgauge.drift")]
        count = len(self.firing)
        series = {
            name: [*values, *[None] * (count - len(values))]
            for name, values in self._series.items()
        }
        test = {
            "interval": f"{STEP}m",
            "input_series": written(series),
            "promql_expr_test": [
                {
                    "expr": "count by (alertname, agent, scenario, metric, against)"
                    ' (ALERTS{alertstate="firing"})',
                    "eval_time": f"{number * STEP}m",
                    "exp_samples": [{"labels": _labels(page), "value": 1} for page in pages],
                }
                for number, pages in enumerate(self._kept(groups))
            ],
        }
        return run(folder, groups, test, step=STEP)

    def _kept(self, groups: list[dict[str, Any]]) -> list[set[Page]]:
        """What fires at each scrape: an alert goes on for as long as its rule keeps it."""
        [minutes] = {
            int(rule["keep_firing_for"].removesuffix("m"))
            for group in groups
            for rule in group["rules"]
        }
        steps = minutes // STEP
        return [
            set().union(*self.firing[max(0, number - steps) : number + 1])
            for number in range(len(self.firing))
        ]


def _labels(page: Page) -> str:
    labels = {"alertname": page.alert, **page._asdict()}
    del labels["alert"]
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items() if value) + "}"
