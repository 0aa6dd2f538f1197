"""Builds `Criterion`s with their scorers from the mapping `criteria` of a configuration.

`syntax` normalizes the mapping, `build` checks it and builds the scorers.
"""

from pathgauge.collector.config.criteria.build import NOT_AVAILABLE, build
from pathgauge.collector.config.criteria.syntax import DEFAULTS, Location, merge

__all__ = ["DEFAULTS", "NOT_AVAILABLE", "Location", "build", "merge"]
