"""How each instrumentation describes agents in its spans: one file a dialect, mostly a table of where its fields live.

`collector.reading` reads traces with them. A dialect of another package is found by the entry-point group `pathgauge.dialects`.
"""

from collector.dialects.dialect import Dialect, Fields, Kind
from collector.dialects.registry import BUILT_IN, Registry

__all__ = ["BUILT_IN", "Dialect", "Fields", "Kind", "Registry"]
