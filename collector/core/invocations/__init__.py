"""Reads traces into agent invocations. What is shared by all dialects is written here once; what is
their own, in `pathgauge.collector.core.invocations.dialects`.
"""

from pathgauge.collector.core.invocations.reader import read
from pathgauge.collector.core.invocations.scenario import DEFAULT_KEYS

__all__ = ["DEFAULT_KEYS", "read"]
