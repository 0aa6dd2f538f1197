"""How each instrumentation describes agents in its spans: one file a dialect, mostly a table of
where its fields live.

`pathgauge.collector.core.invocations` reads traces with them. A dialect of another package is found
by the entry-point group `pathgauge.dialects`.
"""

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.registry import BUILT_IN, Registry

__all__ = ["BUILT_IN", "Dialect", "Fields", "Kind", "Registry"]
