"""Reads the results of two versions of an agent, scenario by scenario.

The index by agent and scenario has them in the order of time. The version is only in the body of a
row: its text is looked for before the body is decoded, so that other versions cost little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import orjson

from pathgauge.collector.store.queries.results import (
    ROWS_BETWEEN_LOOKS,
    Filter,
    may_match,
    oldest_of,
    rows,
    tenants,
)
from pathgauge.collector.store.queries.stored_result import StoredResult, read
from pathgauge.collector.store.schema import name_of
from pathgauge.collector.store.sql import Connection

MAX_ROWS = 10_000
"""Rows of the agent that are looked at, of all its versions."""
READ_S = 1.0
"""How long rows are looked at."""
_MAX_SCENARIOS = 1_000


class ReleaseResults:
    """The results of some versions of an agent."""

    def __init__(
        self,
        connection: Connection,
        wanted: Filter,
        versions: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wanted` names the agent."""
        self._connection = connection
        self._wanted = wanted
        self._versions = {name_of(version) for version in versions}
        self._clock = clock
        self._rows_left = MAX_ROWS
        self.complete = True
        """Whether all results were read; else the newest of each scenario, or some scenarios."""

    def by_scenario(self) -> Iterator[list[StoredResult]]:
        """The results of each scenario of each tenant, the oldest first."""
        end = self._clock() + READ_S
        series = list(islice(self._series(), _MAX_SCENARIOS + 1))
        self.complete = len(series) <= _MAX_SCENARIOS
        del series[_MAX_SCENARIOS:]
        for place, one in enumerate(series):
            # What a scenario does not need is left to the next ones.
            left, now = len(series) - place, self._clock()
            yield self._results(one, self._rows_left // left, now + (end - now) / left)

    def _series(self) -> Iterator[Filter]:
        """A filter for each tenant and scenario of the agent."""
        wanted, agent = self._wanted, name_of(self._wanted.agent)
        for tenant in tenants(self._connection) if wanted.tenant is None else [wanted.tenant]:
            scenarios = [wanted.scenario]
            if wanted.scenario is None:
                scenarios = list(_scenarios(self._connection, tenant, agent))
            for scenario in scenarios:
                yield replace(wanted, tenant=tenant, agent=agent, scenario=scenario)

    def _results(self, series: Filter, most: int, deadline: float) -> list[StoredResult]:
        found: list[StoredResult] = []
        texts = [orjson.dumps(version).decode() for version in self._versions]
        oldest = oldest_of(self._connection, series)
        for number, row in enumerate(rows(self._connection, series, None), 1):
            if row.at < oldest:
                break
            is_late = number % ROWS_BETWEEN_LOOKS == 0 and self._clock() > deadline
            if number > most or is_late:
                self.complete = False
                break
            self._rows_left -= 1
            if may_match(row, series) and any(text in row.body for text in texts):
                result = read(row)
                if result is not None and result.agent_version in self._versions:
                    found.append(result)
        return found[::-1]


def _scenarios(connection: Connection, tenant: str, agent: str) -> Iterator[str]:
    """The scenarios of an agent. An index has them in order, so only its jumps are read."""
    one = "SELECT min(scenario) FROM results WHERE tenant = ? AND agent = ?"
    found = connection.execute(
        f"WITH RECURSIVE found(name) AS ({one} UNION ALL"
        f" SELECT ({one} AND scenario > name) FROM found WHERE name IS NOT NULL)"
        " SELECT name FROM found WHERE name IS NOT NULL LIMIT ?",
        (tenant, agent, tenant, agent, _MAX_SCENARIOS + 1),
    )
    for (name,) in found:
        yield name
