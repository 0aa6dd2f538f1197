"""OTLP/JSON: an export request becomes the same protobuf messages as the binary encoding.

It is proto3 JSON with two exceptions: ids are hex, where protobuf's own reader would silently take
them for base64, and unknown fields are ignored. Each record is converted alone, so a bad one spoils
no other.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from google.protobuf.json_format import ParseDict, ParseError

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

_GROUP_KEYS: dict[Signal, tuple[str, str, str]] = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}
_ID_KEYS = ("traceId", "spanId", "parentSpanId")
_NOT_AN_ID = b64encode(b"\0").decode()
"""Stands for what is not hex: present, and of no valid length, so it meets the check that protobuf
ids meet.
"""
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[,\[{]', re.DOTALL)
"""A string, or what stands before every value but one: a comma or an opening bracket. Possessive,
as a string may lack its end.
"""

_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*+)"  # the backslash of an escape is not escaped itself
    rb"\\u(?:(d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|d[89a-f][0-9a-f]{2})",
    re.IGNORECASE,
)
"""The escapes of a surrogate pair, which are a group, or of half of one."""
_HALF = rb"\ufffd"


@dataclass(slots=True)
class JsonReader:
    """Reads a JSON request of either signal."""

    limits: DecodeLimits
    crowded: bool = True
    """Whether a record of the request may hold too many values."""

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
            raise RejectedError(
                "undecodable", f"expected a JSON object, found {type(source).__name__}"
            )
        self._check_counts(source)
        try:
            message = ParseDict(_with_base64_ids(source), kind(), ignore_unknown_fields=True)
        except (ParseError, RecursionError) as error:
            raise RejectedError(
                "undecodable", f"not a valid {kind.DESCRIPTOR.name} object: {error}"
            ) from error
        raw = message.SerializeToString()
        if len(raw) > max_bytes:
            raise too_large(len(raw), max_bytes)
        return raw, message

    def _parse(self, body: bytes) -> dict[str, Any]:
        if _has_more_tokens(body, self.limits.max_json_tokens):
            raise UndecodableError(
                f"more than {self.limits.max_json_tokens:,} JSON strings, commas and brackets"
            )
        self.crowded = body.count(b"{") > self.limits.max_values
        try:
            request = _parsed(body)
        except orjson.JSONDecodeError as error:
            raise UndecodableError(f"not JSON: {error}") from error
        if not isinstance(request, dict):
            raise UndecodableError(f"expected a JSON object, found {type(request).__name__}")
        return request

    def _check_counts(self, source: dict[str, Any]) -> None:
        if sum(len(value) for value in source.values() if isinstance(value, list)) > (
            most := self.limits.max_attributes
        ):
            raise too_many_attributes(most)
        if self.crowded and more_than(self.limits.max_values, _inner_objects(source)):
            raise too_many_values(self.limits.max_values)


def _parsed(body: bytes) -> Any:
    """The value of a JSON text. JavaScript cuts text inside of characters, and writes the half that
    is left as an escape that stands for nothing: U+FFFD takes its place.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        whole = _SURROGATE.sub(lambda found: found[0] if found[2] else found[1] + _HALF, body)
        if whole == body:
            raise
        return orjson.loads(whole)


def _has_more_tokens(body: bytes, limit: int) -> bool:
    """Whether a text has more than so many tokens. Looks closely only when brackets, commas and
    quotes, those in strings too, may do.
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
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise UndecodableError(f"{key}: expected an array, found {type(value).__name__}")
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
        record["links"] = [
            link | _base64_ids(link) if isinstance(link, dict) else link for link in links
        ]
    return record


def _base64_ids(record: dict[str, Any]) -> dict[str, str]:
    return {key: _base64(record[key]) for key in _ID_KEYS if record.get(key) is not None}


def _base64(identifier: Any) -> str:
    try:
        raw = bytes.fromhex(identifier)
    except (TypeError, ValueError):
        return _NOT_AN_ID
    return (
        b64encode(raw).decode() if 2 * len(raw) == len(identifier) else _NOT_AN_ID
    )  # `fromhex` passes over white space
