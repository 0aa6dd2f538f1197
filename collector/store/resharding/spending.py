"""What judges have spent in the present hour and day: together the new scorers may spend what is
left of the budget, each an equal share of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from pathgauge.collector.store.resharding.source import Source

ACTIVE_SPENT, SHADOW_SPENT = "judge_spent", "shadow_judge_spent"
NAMES = frozenset({ACTIVE_SPENT, SHADOW_SPENT})
"""The names of these counts, of the active judges and of those in shadow. Their other label is the
kind of the window. They hold the number of the window since 1970, and then what was spent in it.
"""


def spent(sources: Iterable[Source]) -> dict[str, list[float]]:
    """What all of these processes have spent, by the name of the row of the table `counts`. Only
    the newest window of each kind counts.
    """
    found: dict[str, list[float]] = {}
    for source in sources:
        for _, (name, state) in source.guarded(source.tables.rows("counts", "name, state")):
            if orjson.loads(name)[0] not in NAMES:
                continue
            window, *amounts = orjson.loads(state)
            newest, *before = found.get(name, [window, *(0.0 for _ in amounts)])
            if window > newest:
                newest, before = window, [0.0 for _ in amounts]
            if window == newest:
                before = [one + other for one, other in zip(before, amounts, strict=True)]
            found[name] = [newest, *before]
    return found


def share(found: dict[str, list[float]], scorers: int) -> dict[str, list[float]]:
    """The part of it that each of so many scorers is charged with."""
    return {
        name: [window, *(amount / scorers for amount in amounts)]
        for name, (window, *amounts) in found.items()
    }
