"""What both encodings of an export request share: its groups, its limits, and the two ways to fail.

A request holds groups by resource, these hold groups by scope, and these the records (spans or log
records). A reader of an encoding finds the groups without looking into the records, so that a
broken record is rejected alone; only a request whose groups cannot be found is undecodable.
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
"""Why a record is rejected for good; a closed set, so that it can label a counter."""

SourceT = TypeVar("SourceT")
MessageT = TypeVar("MessageT", bound=Message)


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """How much one request may hold. Each bound keeps a small hostile request from growing large in
    memory.
    """

    max_records: int = 20_000
    """Spans or log records in a request; those beyond it are rejected."""
    max_record_bytes: int = 4 * 1024 * 1024
    """Encoded size of one record. The size of a whole request is for the transport to limit."""
    max_context_bytes: int = 256 * 1024
    """Encoded size of one resource or scope: each is kept for as long as a record that names it."""
    max_attributes: int = 8_192
    """Attributes, events and links of one record together. Flattened message lists really reach
    thousands.
    """
    max_values: int = 65_536
    """Messages inside one record: its attributes, events and links, and all the values in them,
    however nested. A span with the embeddings of 20 documents has 30,000.
    """

    @property
    def max_entries(self) -> int:
        """Groups and records looked for; a request with more is not read at all, so that tiny
        entries cannot buy much time.
        """
        return self.max_records * 10

    @property
    def max_context_values(self) -> int:
        """Keys and values of all resources of a request; they are decoded at once, while those of
        records wait until these are read.
        """
        return self.max_records * 20

    @property
    def max_json_tokens(self) -> int:
        """Strings, commas and opening brackets of a JSON request, counted before it is parsed: each
        may cost 160 bytes of memory. A span of an agent has about 130.
        """
        return self.max_records * 75


class UndecodableError(ValueError):
    """The request as a whole cannot be read; sending it again would not help."""


class RejectedError(ValueError):
    """One record, or one resource or scope with its records, cannot be read."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


def more_than(limit: int, items: Iterable[object]) -> bool:
    """Whether there are more items than that; looks no further."""
    return any(True for _ in islice(items, limit, None))


def too_large(size: int, limit: int) -> RejectedError:
    """The error for a record, resource or scope of too many bytes."""
    return RejectedError("too_large", f"{size:,} bytes, at most {limit:,} are read")


def too_many_attributes(limit: int) -> RejectedError:
    """The error for a record with too many entries of its own."""
    return RejectedError("too_many_attributes", f"more than {limit:,} attributes, events and links")


def too_many_values(limit: int) -> RejectedError:
    """The error for a record with too many values inside its attributes."""
    return RejectedError(
        "too_many_attributes",
        f"more than {limit:,} attributes, events, links and values inside them",
    )


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
