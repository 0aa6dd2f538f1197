"""Reads traces from the HTTP API of Jaeger's query service, which its own UI uses.

`/api/traces` searches in one service, newest first, and cuts the answer at its limit without a
word. So every service is searched, and an answer that reaches the limit counts as too many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pathgauge.collector.core.documents import did_you_mean
from pathgauge.collector.core.otlp import UndecodableError
from pathgauge.collector.offline.export_requests import json_request
from pathgauge.collector.service.backfill.history import (
    Found,
    SourceError,
    TooManyError,
    whole_traces,
)
from pathgauge.collector.service.backfill.sources.http import HttpClient
from pathgauge.scorers.matching.wording import one_line, short

_MAX_SAID = 300


class JaegerSource:
    """A query service."""

    def __init__(self, client: HttpClient, services: Sequence[str] = ()) -> None:
        """Without `services`, all that the service knows are searched."""
        self.name = " ".join((client.url, *sorted(services)))
        self._client = client
        self._services = services
        self._known: list[str] | None = None

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
            return Found((), notes=tuple(self._missing_services()))
        return Found(whole_traces(request.spans, (), since, until), request.rejected)

    def begin(self, since: int, until: int) -> int:
        """Not known."""
        return since

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _known_services(self) -> list[str]:
        return [name for name in self._data("/api/services", {}) if isinstance(name, str)]

    def _missing_services(self) -> Iterator[str]:
        """Why there may be no trace. Asked once: many periods may be empty."""
        if self._known is None:
            self._known = self._known_services()
        if not self._known:
            yield f"{self._client.url}: Jaeger knows no service, so no span has reached its storage"
        for service in self._services if self._known else ():
            if service not in self._known:
                hint = did_you_mean(service, self._known)
                yield f"{self._client.url}: Jaeger knows no service {short(service)}{hint}"

    def _data(self, path: str, parameters: dict[str, str | int]) -> list[Any]:
        answer = self._client.json(path, parameters)
        data = answer.get("data", ()) if isinstance(answer, dict) else None
        if data is None and isinstance(answer, dict) and not answer.get("errors"):
            data = []  # how Jaeger writes an empty list
        if isinstance(data, list):
            return data
        found = "found no list of data"
        if answer is None:
            found = f"{found}, but status 404"
        elif isinstance(answer, dict) and answer.get("errors"):
            raise SourceError(f"{self._client.url}{path}: Jaeger says: {_said(answer['errors'])}")
        text = "expected the query service of Jaeger, at port 16686, with the path of its UI if any"
        raise SourceError(f"{self._client.url}{path}: {found}, {text}")


def _said(errors: Any) -> str:
    """The messages in an answer about errors."""
    found = [one.get("msg") for one in errors if isinstance(one, dict)]
    return one_line("; ".join(map(str, filter(None, found))) or str(errors))[:_MAX_SAID]
