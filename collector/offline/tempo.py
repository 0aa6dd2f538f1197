"""Translates the JSON of Grafana Tempo and of Grafana downloads into an OTLP/JSON export request.

Tempo writes protobuf's own JSON: ids are base64, enums are names. `/api/traces` calls the resource
groups `batches`; `/api/v2/traces` keeps the OTLP name and wraps them in `trace`. A Grafana download
has `batches` with hex ids. Older versions call scopes instrumentation libraries, like OTLP then
did. A document that is OTLP/JSON already keeps its meaning. Malformed values are passed on
unchanged, so that the OTLP decoder rejects them.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import Any

_WRAPPERS = ("trace", "result")
"""Keys that wrap a request; `result` is that of Jaeger's `/api/v3/traces`."""

_GROUP_KEYS = ("batches", "resourceSpans")
_ID_KEYS = ("traceId", "spanId", "parentSpanId")
_BASE64_LENGTHS = (24, 12)
"""The lengths of 16 and 8 bytes in base64; in hex they are 32 and 16 characters long."""


def export_request(document: Any) -> dict[str, Any] | None:
    """Translate a trace, wrapped or not; `None` when the document is something else."""
    if not isinstance(document, dict):
        return None
    request = next(
        (inner for key in _WRAPPERS if isinstance(inner := document.get(key), dict)), document
    )
    groups = next((key for key in _GROUP_KEYS if key in request), None)
    if groups is None:
        return None
    rest = {key: value for key, value in request.items() if key != groups}
    return rest | {"resourceSpans": _each(request[groups], _resource_group)}


def _resource_group(group: dict[str, Any]) -> dict[str, Any]:
    scopes = group.get("scopeSpans", group.get("instrumentationLibrarySpans"))
    return {"resource": group.get("resource"), "scopeSpans": _each(scopes, _scope_group)}


def _scope_group(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "scope": group.get("scope", group.get("instrumentationLibrary")),
        "spans": _each(group.get("spans"), _span),
    }


def _span(span: dict[str, Any]) -> dict[str, Any]:
    return _with_hex_ids(span) | {"links": _each(span.get("links"), _with_hex_ids)}


def _with_hex_ids(record: dict[str, Any]) -> dict[str, Any]:
    return record | {key: _hex(record[key]) for key in _ID_KEYS if key in record}


def _hex(identifier: Any) -> Any:
    if not isinstance(identifier, str) or len(identifier) not in _BASE64_LENGTHS:
        return identifier
    try:
        return b64decode(identifier, validate=True).hex()
    except ValueError:
        return identifier


def _each(items: Any, translate: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if not isinstance(items, list):
        return items
    return [translate(item) if isinstance(item, dict) else item for item in items]
