"""Names of metrics in other tools for scorers that have another name here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pathgauge.collector.config.plugins.scorers import SCORERS
from pathgauge.scorers.types import Json


class Alias(NamedTuple):
    """A scorer, with the options that make it the metric."""

    scorer: str
    options: Mapping[str, Json] = {}


ALIASES: Mapping[str, Alias] = {
    "tool_trajectory_in_order": Alias("tool_trajectory_avg_score", {"match_type": "IN_ORDER"}),
    "tool_calls_after_approval": Alias("interrupt_rejection"),
    "multi_turn_task_success": Alias("multi_turn_task_success_v1"),
    "multi_turn_trajectory_quality": Alias("multi_turn_trajectory_quality_v1"),
    "multi_turn_tool_use_quality": Alias("multi_turn_tool_use_quality_v1"),
}


def without_alias(name: str, given: Mapping[str, Json]) -> Mapping[str, Json]:
    """The criterion called `name` with the scorer that its name or its key `scorer` stands for. A
    scorer that a package registers under that name comes first.
    """
    written = given.get("scorer", name)
    alias = ALIASES.get(written) if isinstance(written, str) else None
    if alias is None or written in SCORERS.names():
        return given
    return {**alias.options, **given, "scorer": alias.scorer}
