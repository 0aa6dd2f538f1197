"""Reads traces of every instrumentation into agent invocations: one file a dialect, the shared reading written once."""

from collector.dialects.reading import read
from collector.dialects.registry import may_be_anchor
from collector.dialects.scenario import DEFAULT_KEYS

__all__ = ["DEFAULT_KEYS", "may_be_anchor", "read"]
