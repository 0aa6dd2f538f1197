"""What both encodings of an export request share: its groups, its limits, and the two ways to fail.

A request holds groups by resource, these hold groups by scope, and these the records (spans or log records). A reader of
an encoding finds the groups without looking into the records, so that a broken record is rejected alone; only a request
whose groups cannot be found is undecodable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from google.protobuf.message import Message

Signal = Literal["traces", "logs"]
Reason = Literal["invalid_id", "undecodable", "too_large", "too_many_attributes", "too_many_records"]
"""Why a record is rejected for good; a closed set, so that it can label a counter."""

SourceT = TypeVar("SourceT")
MessageT = TypeVar("MessageT", bound=Message)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request may hold. Each bound keeps a small hostile request from growing large in memory."""

    max_records: int = 20_000
    """Spans or log records in a request; those beyond it are rejected."""
    max_record_bytes: int = 4 * 1024 * 1024
    """Encoded size of one record, or of one resource. The size of a whole request is for the transport to limit."""
    max_attributes: int = 8_192
    """Attributes, events and links of one record together. Flattened message lists really reach thousands."""

    @property
    def max_entries(self) -> int:
        """Groups and records looked for; a request with more is not read at all, so that tiny entries cannot buy much time."""
        return self.max_records * 10

    @property
    def max_json_containers(self) -> int:
        """Objects and arrays of a JSON request, counted before it is parsed: three bytes of text can cost 200 in memory."""
        return self.max_records * 25


class UndecodableError(ValueError):
    """The request as a whole cannot be read; sending it again would not help."""


class RejectedError(ValueError):
    """One record, or one resource or scope with its records, cannot be read."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


class ScopeGroup(NamedTuple, Generic[SourceT]):
    """Records of one instrumentation scope, each still encoded."""

    scope: SourceT
    records: Sequence[SourceT]


class ResourceGroup(NamedTuple, Generic[SourceT]):
    """Scope groups of one resource."""

    resource: SourceT
    scopes: Sequence[ScopeGroup[SourceT]]


class Reader(Protocol[SourceT]):
    """Reads one encoding."""

    def groups(self, body: bytes, signal: Signal) -> Iterator[ResourceGroup[SourceT]]:
        """Find the groups of a request. Raises `UndecodableError`."""
        ...

    def message(self, source: SourceT, kind: type[MessageT]) -> tuple[bytes, MessageT]:
        """Decode a record, resource or scope, together with its protobuf bytes. Raises `RejectedError`."""
        ...
