"""Reads criteria: what people wrote under `criteria` comes in, `Criterion`s with their scorers
built go out.

`written` knows how a criterion may be written, `building` makes it one.
"""

from pathgauge.collector.config.criteria.build import NOT_AVAILABLE, build
from pathgauge.collector.config.criteria.syntax import DEFAULTS, Place, lay_over

__all__ = ["DEFAULTS", "NOT_AVAILABLE", "Place", "build", "lay_over"]
