"""Reads traces into agent invocations. What is shared by all dialects is written here once; what is their own, in `collector.dialects`."""

from collector.reading.invocation import read
from collector.reading.scenario import DEFAULT_KEYS

__all__ = ["DEFAULT_KEYS", "read"]
