"""Redacts the decoded records of one export request by the rules of their tenant, and encodes the
request body for the result.

Pure: no clock and no I/O; the caller provides the salt of the hashes. docs/redaction.md lists what
is covered and what is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.invocations.scenario import DEFAULT_KEYS
from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.otlp.spans import LogRecord, Resource, Scope, Span
from pathgauge.collector.core.redaction.content import ContentFilter
from pathgauge.collector.core.redaction.needed_keys import NeededKeys
from pathgauge.collector.core.redaction.records import Records
from pathgauge.collector.core.redaction.replace import RedactionCounts, Replacements
from pathgauge.collector.core.redaction.rules import (
    MASK_ALL,
    Action,
    KeyActions,
    KeyRule,
    Rules,
)
from pathgauge.collector.core.redaction.values import Values

__all__ = [
    "MASK_ALL",
    "Action",
    "KeyRule",
    "Redacted",
    "RedactionCounts",
    "Redactor",
    "Rules",
]

RecordT = TypeVar("RecordT", Span, LogRecord)


@dataclass(frozen=True, slots=True)
class Redacted(Generic[RecordT]):
    """One export request after redaction."""

    records: tuple[RecordT, ...]
    body: bytes
    """The records as OTLP/protobuf."""
    counts: RedactionCounts


class Redactor:
    """Redacts the telemetry of all tenants."""

    def __init__(
        self,
        rules: Rules,
        tenants: Mapping[str, Rules],
        salt: bytes,
        registry: Registry,
        scenario_keys: Sequence[str] = DEFAULT_KEYS,
    ) -> None:
        """`rules` apply to every tenant without rules of its own in `tenants`. Equal values have
        equal hashes if the `salt` is the same.
        """
        self._needed = NeededKeys(registry, scenario_keys)
        self._common = _Policy(rules, salt)
        self._tenants = {tenant: _Policy(own, salt) for tenant, own in tenants.items()}

    def spans(self, spans: Sequence[Span]) -> Redacted[Span]:
        """Redact the spans of one request, all of one tenant."""
        return self._redact(spans, Records.span)

    def logs(
        self, logs: Sequence[LogRecord], without_trace: int = 0, own_events: int = 0
    ) -> Redacted[LogRecord]:
        """Redact the log records of one request, all of one tenant.

        `without_trace`: number of records outside of any trace. They are dropped, and the encoded
        request keeps only their number, as it does of `own_events`.
        """
        return self._redact(logs, Records.log, without_trace, own_events)

    def _redact(
        self,
        records: Sequence[RecordT],
        redact: Callable[[Records, RecordT, Resource, Scope], RecordT],
        without_trace: int = 0,
        own_events: int = 0,
    ) -> Redacted[RecordT]:
        policy = self._tenants.get(records[0].tenant, self._common) if records else self._common
        counts = RedactionCounts()
        values = Values(
            policy.keys,
            policy.replacements,
            self._needed.names,
            self._needed.ids,
            counts,
        )
        redactor = Records(values, None if policy.content else ContentFilter(self._needed))
        resources = {
            id(one): redactor.resource(one)
            for one in _distinct(record.resource for record in records)
        }
        scopes = {
            id(one): redactor.scope(one) for one in _distinct(record.scope for record in records)
        }
        redacted = tuple(
            redact(redactor, record, resources[id(record.resource)], scopes[id(record.scope)])
            for record in records
        )
        return Redacted(redacted, encode_request(redacted, without_trace, own_events), counts)


class _Policy:
    """The rules of one tenant, compiled."""

    def __init__(self, rules: Rules, salt: bytes) -> None:
        self.keys = KeyActions(rules.attributes)
        self.replacements = Replacements(rules.detectors, salt)
        self.content = rules.content


SharedT = TypeVar("SharedT", Resource, Scope)


def _distinct(shared: Iterable[SharedT]) -> list[SharedT]:
    """Each object once. Shared objects must stay shared: encoding groups records by them."""
    return list({id(one): one for one in shared}.values())
