"""What both encodings of an export request share: groups, limits and errors.

A request contains a group per resource, each with a group per scope, each with records (spans or
log records). A `Reader` finds the groups without decoding the records, so that an invalid record is
rejected alone. A request is undecodable only if its groups cannot be found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from google.protobuf.message import Message

Signal = Literal["traces", "logs"]
Encoding = Literal["protobuf", "json"]
Reason = Literal[
    "invalid_id", "undecodable", "too_large", "too_many_attributes", "too_many_records"
]
"""Why a record is permanently rejected. A closed set, because it is a metric label."""

SourceT = TypeVar("SourceT")
MessageT = TypeVar("MessageT", bound=Message)


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """Limits of one request. They prevent a small malicious request from taking much memory."""

    max_records: int = 20_000
    """Spans or log records in a request; further ones are rejected."""
    max_record_bytes: int = 4 * 1024 * 1024
    """Encoded size of one record. The transport limits the size of the whole request."""
    max_context_bytes: int = 256 * 1024
    """Encoded size of one resource or scope. It is kept as long as any of its records."""
    max_attributes: int = 8_192
    """Attributes, events and links of one record together. Flattened message lists reach
    thousands in practice.
    """
    max_values: int = 65_536
    """Nested messages in one record: its attributes, events and links, and all values in them at
    any depth. A span with the embeddings of 20 documents has 30,000.
    """
    max_json_tokens: int = 1_500_000
    """Strings, commas and opening brackets of a JSON request. They are counted before parsing,
    because each may take 160 bytes of memory. An agent span has about 130.
    """

    @property
    def max_entries(self) -> int:
        """Groups and records of a request. A request with more is refused as a whole, so that tiny
        entries cannot take much CPU time.
        """
        return self.max_records * 10

    @property
    def max_context_values(self) -> int:
        """Keys and values in all resources of a request. They are decoded at once, unlike those of
        records.
        """
        return self.max_records * 20


class UndecodableError(ValueError):
    """The whole request cannot be decoded; resending it would not help."""


class RejectedError(ValueError):
    """One record, or one resource or scope with its records, is rejected."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


def more_than(limit: int, items: Iterable[object]) -> bool:
    """Whether there are more than `limit` items; consumes one item more at most."""
    return any(True for _ in islice(items, limit, None))


def too_large(size: int, limit: int) -> RejectedError:
    """The error for a record, resource or scope of too many bytes."""
    return RejectedError("too_large", f"{size:,} bytes, at most {limit:,} are read")


def too_many_attributes(limit: int) -> RejectedError:
    """The error for a record with too many entries of its own."""
    return RejectedError("too_many_attributes", f"more than {limit:,} attributes, events and links")


def too_many_values(limit: int) -> RejectedError:
    """The error for a record with too many values inside its attributes."""
    text = f"more than {limit:,} attributes, events, links and values inside them"
    return RejectedError("too_many_attributes", text)


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

    def message(
        self, source: SourceT, kind: type[MessageT], max_bytes: int
    ) -> tuple[bytes, MessageT]:
        """Decode a record, resource or scope of at most `max_bytes`, together with its protobuf
        bytes. Raises `RejectedError`.
        """
        ...
