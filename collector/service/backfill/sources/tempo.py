"""Reads traces from Grafana Tempo: a search for their ids, then each trace by its id.

A search is cut at its limit without a word, so an answer that reaches it counts as too many.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pathgauge.collector.core.otlp import UndecodableError
from pathgauge.collector.offline.export_requests import json_request
from pathgauge.collector.service.backfill.history import (
    Found,
    PastTrace,
    SourceError,
    TooManyError,
    whole_traces,
)
from pathgauge.collector.service.backfill.sources.http import HttpClient
from pathgauge.scorers.matching.wording import counted

AT_ONCE = 8
"""Traces that are asked for at the same time."""
ALL = "{}"
"""The TraceQL query that every span matches."""
_SECOND = 1_000_000_000
_ID_DIGITS = 32


class TempoSource:
    """A Tempo, or its query frontend."""

    def __init__(self, client: HttpClient, query: str = ALL) -> None:
        """`query` is TraceQL: traces with a span that matches are read."""
        self.name = f"{client.url} {query}"
        self._client = client
        self._query = query
        self._pool = ThreadPoolExecutor(AT_ONCE, "tempo")

    def read(self, since: int, until: int, limit: int) -> Found:
        """The traces that began in this time."""
        traces: list[PastTrace] = []
        rejected, missing = 0, 0
        ids = self._search(since, until, limit)
        for trace_id, document in zip(ids, self._pool.map(self._trace, ids), strict=True):
            if document is None:
                missing += 1
                continue
            try:
                request = json_request(document)
            except UndecodableError as error:
                url = f"{self._client.url}/api/traces/{trace_id}"
                raise SourceError(f"{url}: {error}") from error
            traces += whole_traces(request.spans, (), since, until)
            rejected += request.rejected
        notes = (
            [f"Tempo found {counted(missing, 'trace')} that it does not have"] if missing else []
        )
        return Found(traces, rejected, notes)

    def begin(self, since: int, until: int) -> int:
        """Not known."""
        return since

    def close(self) -> None:
        """End the connections."""
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

    def _trace(self, trace_id: str) -> Any:
        return self._client.json(f"/api/traces/{trace_id}", {})

    def _search(self, since: int, until: int, limit: int) -> list[str]:
        parameters: dict[str, str | int] = {
            "q": self._query,
            "start": since // _SECOND,
            "end": -(-until // _SECOND),
            "limit": limit + 1,
        }
        answer = self._client.json("/api/search", parameters)
        found = answer.get("traces") if isinstance(answer, dict) else None
        if found is None and isinstance(answer, dict) and "metrics" in answer:
            found = []  # protobuf's own JSON leaves an empty list out
        if not isinstance(found, list):
            text = "found no list of traces, expected the search API of Tempo"
            raise SourceError(f"{self._client.url}/api/search: {text}")
        if len(found) > limit:
            raise TooManyError
        return list(dict.fromkeys(map(self._id, found)))

    def _id(self, found: Any) -> str:
        """The id with the leading zeros that Tempo omits."""
        trace_id = found.get("traceID", "") if isinstance(found, dict) else ""
        if not isinstance(trace_id, str) or not trace_id.isalnum():
            text = f"found the trace id {trace_id!r:.50}, expected hexadecimal digits"
            raise SourceError(f"{self._client.url}/api/search: {text}")
        return trace_id.rjust(_ID_DIGITS, "0")
