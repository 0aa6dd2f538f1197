"""Reads traces from the HTTP API of Jaeger's query service, which its own UI uses.

`/api/traces` searches in one service, newest first, and cuts the answer at its limit without a
word. So every service is searched, and an answer that reaches the limit counts as too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pathgauge.collector.core.otlp import UndecodableError
from pathgauge.collector.offline.export_requests import json_request
from pathgauge.collector.service.backfill.history import (
    Found,
    SourceError,
    TooManyError,
    whole_traces,
)
from pathgauge.collector.service.backfill.sources.http import HttpClient


class JaegerSource:
    """A query service."""

    def __init__(self, client: HttpClient, services: Sequence[str] = ()) -> None:
        """Without `services`, all that the service knows are searched."""
        self.name = " ".join((client.url, *sorted(services)))
        self._client = client
        self._services = services

    def read(self, since: int, until: int, limit: int) -> Found:
        """The traces that began in this time."""
        traces: dict[str, Any] = {}
        for service in self._services or self._known_services():
            parameters: dict[str, str | int] = {
                "service": service,
                "start": since // 1000,
                "end": -(-until // 1000),
                "limit": limit + 1,
            }
            found = self._data("/api/traces", parameters)
            traces.update((trace.get("traceID", ""), trace) for trace in found)
            if len(found) > limit or len(traces) > limit:
                raise TooManyError
        try:
            request = json_request({"data": list(traces.values())}) if traces else None
        except UndecodableError as error:
            raise SourceError(f"{self._client.url}/api/traces: {error}") from error
        if request is None:
            return Found(())
        return Found(whole_traces(request.spans, (), since, until), request.rejected)

    def begin(self, since: int, until: int) -> int:
        """Not known."""
        return since

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _known_services(self) -> list[str]:
        return [name for name in self._data("/api/services", {}) if isinstance(name, str)]

    def _data(self, path: str, parameters: dict[str, str | int]) -> list[Any]:
        answer = self._client.json(path, parameters)
        data = answer.get("data", ()) if isinstance(answer, dict) else None
        if data is None and isinstance(answer, dict) and not answer.get("errors"):
            data = []  # how Jaeger writes an empty list
        if not isinstance(data, list):
            text = "expected the query service of Jaeger, which listens at port 16686"
            raise SourceError(f"{self._client.url}{path}: found no list of data, {text}")
        return data
