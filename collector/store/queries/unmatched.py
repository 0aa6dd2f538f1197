"""Counts the invocations whose scenario id has no reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pathgauge.collector.store.sql import Connection

MAX_ROWS = 20_000
"""How many of the newest results are looked at."""
MAX_SCENARIOS = 1_000


class UnmatchedScenario(NamedTuple):
    """A scenario id without a reference."""

    tenant: str
    scenario_id: str
    invocations: int


class UnmatchedScenarios(NamedTuple):
    """The most frequent ones first."""

    scenarios: Sequence[UnmatchedScenario]
    further_invocations: int
    """Invocations with ids that are not listed."""


def unmatched_scenarios(connection: Connection, tenant: str | None = None) -> UnmatchedScenarios:
    """The scenario ids of one tenant, or of all (`None`)."""
    rows = connection.execute(
        "SELECT tenant, scenario FROM"
        " (SELECT * FROM results NOT INDEXED ORDER BY id DESC LIMIT ?) AS newest"
        " WHERE verdict <> ''"  # neither withdrawn nor replaced by a revision
        ' AND instr(body, \'"unmatched":"unknown_scenario"\') > 0',
        (MAX_ROWS,),
    )
    found: Counter[tuple[str, str]] = Counter(key for key in rows if tenant in (None, key[0]))
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    listed = [UnmatchedScenario(key[0], key[1], count) for key, count in ordered[:MAX_SCENARIOS]]
    return UnmatchedScenarios(listed, found.total() - sum(one.invocations for one in listed))
