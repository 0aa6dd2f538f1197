"""How each instrumentation describes agents in its spans: one file per dialect, mostly tables.

`pathgauge.collector.core.invocations` reads traces with them. Other packages add dialects with the
entry-point group `pathgauge.dialects`.
"""

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.registry import Registry

__all__ = ["Dialect", "Fields", "Kind", "Registry"]
