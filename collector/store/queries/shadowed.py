"""Reads the results of an agent that have scores in shadow."""

from __future__ import annotations

from collections.abc import Sequence

from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.stored_result import StoredResult
from pathgauge.collector.store.queries.two_versions import READ_S, ReleaseResults
from pathgauge.collector.store.sql import Connection


class ShadowedResults(ReleaseResults):
    """The results with scores in shadow, of whatever version of the agent."""

    def __init__(self, connection: Connection, wanted: Filter, read_s: float = READ_S) -> None:
        super().__init__(connection, wanted, (), read_s)

    def _texts(self) -> Sequence[str]:
        return ['"shadow":{']

    def _is_wanted(self, result: StoredResult) -> bool:
        return result.shadow is not None
