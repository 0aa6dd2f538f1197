"""Finds the results that were stored since the last look, by the time of the newest one. The clocks
of two machines may differ, so only times of results are compared.
"""

from __future__ import annotations

from datetime import timedelta

from pathgauge.collector.api import models
from pathgauge.collector.api.queries import ResultQuery
from pathgauge.collector.cli.result_sources.source import (
    ResultSource,
    SourceError,
    UnavailableError,
    newest,
)
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.queries.results import MAX_LIMIT

MAX_NEW = 10_000
"""Results of one look, the newest; a terminal cannot show more."""
_OVERLAP = timedelta(seconds=1)
_Key = tuple[str, str, str, int]


class Following:
    """Remembers what was seen."""

    def __init__(self, source: ResultSource, query: ResultQuery) -> None:
        """`query` filters. Raises `StoreError`."""
        self._source = source
        self._query = query.model_copy(update={"limit": MAX_LIMIT, "since": None})
        self._seen: set[_Key] = set()
        self._move()
        self.new()

    def new(self) -> list[models.Result]:
        """The results since the last look, the oldest first. Raises `StoreError`."""
        query = self._query
        self._move()
        found = {_key(one): one for one in newest(self._source, query, MAX_NEW)}
        fresh = [one for key, one in found.items() if key not in self._seen]
        self._seen = set(found)
        return fresh[::-1]

    @staticmethod
    def is_over(error: StoreError) -> bool:
        """Whether another look cannot succeed either."""
        return isinstance(error, SourceError) and not isinstance(error, UnavailableError)

    def _move(self) -> None:
        """Start the next look shortly before the newest result of any kind."""
        page = self._source.results(ResultQuery(limit=1, cursor=None))
        if page.results:
            since = (page.results[0].time - _OVERLAP).timestamp()
            self._query = self._query.model_copy(update={"since": since})


def _key(result: models.Result) -> _Key:
    return result.tenant, result.trace_id, result.span_id, result.revision
