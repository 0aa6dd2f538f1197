"""OTLP/JSON: converts an export request into the same protobuf messages as the binary encoding.

OTLP/JSON is proto3 JSON with two exceptions: ids are hexadecimal, which protobuf's parser would
silently read as base64, and unknown fields are ignored. Each record is converted separately, so
that an invalid record does not affect the others.

The specification allows camelCase only. Senders that use the names of protobuf (`resource_spans`)
are understood all the same, as by the OpenTelemetry Collector: as unknown fields, all of their
records would be ignored without a word.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from google.protobuf.json_format import ParseDict, ParseError
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from pathgauge.collector.core.otlp.json_text import parsed_json
from pathgauge.collector.core.otlp.json_types import WrongTypeError, check_types, json_type
from pathgauge.collector.core.otlp.request import (
    DecodeLimits,
    MessageT,
    RejectedError,
    ResourceGroup,
    ScopeGroup,
    Signal,
    UndecodableError,
    more_than,
    too_large,
    too_many_attributes,
    too_many_values,
)
from pathgauge.scorers.matching.wording import cut

_GROUP_KEYS: dict[Signal, tuple[str, str, str]] = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}
_ORIGINAL_NAMES = {
    "resourceSpans": "resource_spans",
    "scopeSpans": "scope_spans",
    "resourceLogs": "resource_logs",
    "scopeLogs": "scope_logs",
    "logRecords": "log_records",
}
_ID_KEYS = ("traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id")
_NOT_AN_ID = b64encode(b"\0").decode()
"""Replaces an id that is not hexadecimal. Its invalid length makes the id check reject it, as it
does for protobuf.
"""
_MAX_SHOWN_ID = 40
"""Characters of a wrong id in the message to the sender."""
_TOKEN = re.compile(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"?+|[,\[{]', re.DOTALL)
"""A string, a comma or an opening bracket: every value but the first follows one of the latter. No
quantifier gives anything back, so that an unterminated string costs linear time.
"""


@dataclass(slots=True)
class JsonReader:
    """Reads JSON requests of either signal."""

    limits: DecodeLimits
    may_exceed_values: bool = True
    """Whether a record of the request may have too many values, so that they must be counted."""

    def groups(self, body: bytes, signal: Signal) -> Iterator[ResourceGroup[Any]]:
        """Find the groups of a request. Raises `UndecodableError`."""
        resource_key, scope_key, record_key = _GROUP_KEYS[signal]
        for group in _objects(self._parse(body), resource_key):
            scopes = [
                ScopeGroup(scope.get("scope"), _array(scope, record_key))
                for scope in _objects(group, scope_key)
            ]
            yield ResourceGroup(group.get("resource"), scopes)

    def message(self, source: Any, kind: type[MessageT], max_bytes: int) -> tuple[bytes, MessageT]:
        """Decode a record, resource or scope. Raises `RejectedError`."""
        if source is None:
            return b"", kind()
        if not isinstance(source, dict):
            text = f"found {json_type(source)}, expected a JSON object"
            raise RejectedError("undecodable", text)
        self._check_counts(source)
        if kind is SpanProto:
            _check_ids(source)
        try:
            check_types(source, kind)
            message = ParseDict(_with_base64_ids(source), kind(), ignore_unknown_fields=True)
        except (WrongTypeError, ParseError, RecursionError) as error:
            text = f"not a valid {kind.DESCRIPTOR.name} object: {error}"
            raise RejectedError("undecodable", text) from error
        raw = message.SerializeToString()
        if len(raw) > max_bytes:
            raise too_large(len(raw), max_bytes)
        return raw, message

    def _parse(self, body: bytes) -> dict[str, Any]:
        if _has_more_tokens(body, self.limits.max_json_tokens):
            raise UndecodableError(
                f"more than {self.limits.max_json_tokens:,} JSON strings, commas and brackets"
            )
        self.may_exceed_values = body.count(b"{") > self.limits.max_values
        try:
            request = parsed_json(body)
        except orjson.JSONDecodeError as error:
            raise UndecodableError(f"not JSON: {error}") from error
        if not isinstance(request, dict):
            raise UndecodableError(f"found {json_type(request)}, expected a JSON object")
        return request

    def _check_counts(self, source: dict[str, Any]) -> None:
        entries = sum(len(value) for value in source.values() if isinstance(value, list))
        if entries > self.limits.max_attributes:
            raise too_many_attributes(self.limits.max_attributes)
        if self.may_exceed_values and more_than(self.limits.max_values, _inner_objects(source)):
            raise too_many_values(self.limits.max_values)


def _check_ids(span: dict[str, Any]) -> None:
    """Raise `RejectedError` for text that is not hexadecimal: later it is not known any more. Log
    records are not rejected for that: they are valid without a trace.
    """
    for key in _ID_KEYS:
        identifier = span.get(key)
        if isinstance(identifier, str) and _bytes(identifier) is None:
            found = cut(identifier, _MAX_SHOWN_ID)
            raise RejectedError("invalid_id", f"{key}: expected hexadecimal, found {found!r}")


def _has_more_tokens(body: bytes, limit: int) -> bool:
    """Whether a text has more than `limit` tokens. It is tokenized only if the number of brackets,
    commas and quotes, including those inside strings, exceeds the limit.
    """
    if sum(map(body.count, (b"{", b"[", b","))) + body.count(b'"') // 2 <= limit:
        return False
    return more_than(limit, _TOKEN.finditer(body))


def _inner_objects(value: Any) -> Iterator[dict[str, Any]]:
    """The objects inside a value, at any depth."""
    unread = [value]
    while unread:
        value = unread.pop()
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, dict):
                yield inner
                unread.append(inner)
            elif isinstance(inner, list):
                unread.append(inner)


def _array(parent: dict[str, Any], key: str) -> list[Any]:
    if parent.get(key) is None:
        key = _ORIGINAL_NAMES.get(key, key)
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise UndecodableError(f"{key}: found {json_type(value)}, expected an array")
    return value


def _objects(parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
    items = _array(parent, key)
    if not all(isinstance(item, dict) for item in items):
        raise UndecodableError(f"{key}: expected an array of objects")
    return items


def _with_base64_ids(record: dict[str, Any]) -> dict[str, Any]:
    record = record | _base64_ids(record)
    links = record.get("links")
    if isinstance(links, list):
        record["links"] = [_link_with_base64_ids(link) for link in links]
    return record


def _link_with_base64_ids(link: Any) -> Any:
    return link | _base64_ids(link) if isinstance(link, dict) else link


def _base64_ids(record: dict[str, Any]) -> dict[str, str]:
    return {key: _base64(record[key]) for key in _ID_KEYS if record.get(key) is not None}


def _base64(identifier: Any) -> str:
    raw = _bytes(identifier)
    return _NOT_AN_ID if raw is None else b64encode(raw).decode()


def _bytes(identifier: Any) -> bytes | None:
    """A hexadecimal text as bytes; `None` for anything else."""
    try:
        raw = bytes.fromhex(identifier)
    except (TypeError, ValueError):
        return None
    return raw if 2 * len(raw) == len(identifier) else None  # `fromhex` ignores white space
