"""Reads the results of two versions of an agent, scenario by scenario.

The index by agent and scenario has them in the order of time. The version is only in the body of a
row: its text is looked for before the body is decoded, so that other versions cost little.

Only time bounds how many are read. They are not held in memory: the reader takes one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import orjson

from pathgauge.collector.store.queries.filter import Filter, may_match, oldest_of
from pathgauge.collector.store.queries.results import ROWS_BETWEEN_LOOKS
from pathgauge.collector.store.queries.rows import rows, tenants
from pathgauge.collector.store.queries.stored_result import StoredResult, read
from pathgauge.collector.store.schema import name_of
from pathgauge.collector.store.sql import Connection

READ_S = 1.5
"""How long rows are looked at, less than a statement may take (`MAX_SECONDS`)."""
_MAX_SCENARIOS = 10_000


class ReleaseResults:
    """The results of some versions of an agent."""

    def __init__(
        self,
        connection: Connection,
        wanted: Filter,
        versions: Sequence[str],
        read_s: float = READ_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wanted` names the agent. Rows are looked at for `read_s` seconds."""
        self._connection = connection
        self._wanted = wanted
        self._versions = {name_of(version) for version in versions}
        self._read_s = read_s
        self._clock = clock
        self.complete = True
        """Whether all results were read; else the newest of each scenario, or some scenarios."""

    def newest_first(self) -> Iterator[StoredResult]:
        """The results, one scenario of a tenant after the other, the newest of each first."""
        end = self._clock() + self._read_s
        series = list(islice(self._series(), _MAX_SCENARIOS + 1))
        self.complete = len(series) <= _MAX_SCENARIOS
        del series[_MAX_SCENARIOS:]
        for place, one in enumerate(series):
            # The time that a scenario does not need is left to the next ones.
            now = self._clock()
            yield from self._results(one, now + (end - now) / (len(series) - place))

    def _series(self) -> Iterator[Filter]:
        """A filter for each tenant and scenario of the agent."""
        wanted, agent = self._wanted, name_of(self._wanted.agent)
        for tenant in tenants(self._connection) if wanted.tenant is None else [wanted.tenant]:
            scenarios = [wanted.scenario]
            if wanted.scenario is None:
                scenarios = list(_scenarios(self._connection, tenant, agent))
            for scenario in scenarios:
                yield replace(wanted, tenant=tenant, agent=agent, scenario=scenario)

    def _results(self, series: Filter, deadline: float) -> Iterator[StoredResult]:
        texts = self._texts()
        oldest = oldest_of(self._connection, series)
        for number, row in enumerate(rows(self._connection, series, None), 1):
            if row.at < oldest:
                break
            if number % ROWS_BETWEEN_LOOKS == 0 and self._clock() > deadline:
                self.complete = False
                break
            if may_match(row, series) and any(text in row.body for text in texts):
                result = read(row)
                if result is not None and self._is_wanted(result):
                    yield result

    def _texts(self) -> Sequence[str]:
        """The body of a wanted result contains one of them."""
        return [orjson.dumps(version).decode() for version in self._versions]

    def _is_wanted(self, result: StoredResult) -> bool:
        return result.agent_version in self._versions


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
