"""Reads traces into agent invocations. The code here is shared by all dialects; what is specific to
one is in `pathgauge.collector.core.invocations.dialects`.
"""

from pathgauge.collector.core.invocations.reader import read, readings
from pathgauge.collector.core.invocations.scenario import DEFAULT_KEYS

__all__ = ["DEFAULT_KEYS", "read", "readings"]
