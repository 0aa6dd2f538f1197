"""Traces that were rebuilt from evidence, and what they say of the telemetry they stand for.

A rebuilt trace has all of its own spans. What the original lacked is no longer visible in them, so
the entry span states the flags of the invocation. Without them, a trajectory with lost calls would
be scored, and recorded as a reference, as if it were complete.
"""

from __future__ import annotations

from collections.abc import Set
from typing import get_args

from pathgauge.collector.core.otlp.spans import Scope, Span
from pathgauge.scorers.types import Flag

SCOPE = Scope("pathgauge.evidence")
"""Marks spans that were rebuilt."""
FLAGS = "pathgauge.flags"
"""The attribute with the flags of the invocation, separated by blanks."""

_KNOWN: frozenset[Flag] = frozenset(get_args(Flag))
_ON_THE_WAY: frozenset[Flag] = frozenset({"redacted", "dropped_attributes", "dropped_spans"})
"""What may have happened to the rebuilt spans themselves."""


def original_flags(entry: Span, found: Set[Flag]) -> frozenset[Flag] | None:
    """The flags of the invocation whose rebuilt entry span this is, instead of those that were
    `found`. `None` for all other spans.
    """
    if entry.scope.name != SCOPE.name or FLAGS not in entry.attributes:
        return None
    stated = str(entry.attributes[FLAGS]).split()
    return _KNOWN.intersection(stated) | (found & _ON_THE_WAY)
