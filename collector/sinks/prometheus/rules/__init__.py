"""The Prometheus rule file: `template.yml` with the options of `pathgauge rules` filled in.

`deploy/prometheus/rules.yml` is the result with the default options.
"""

from pathgauge.collector.sinks.prometheus.rules.options import Choices, choose
from pathgauge.collector.sinks.prometheus.rules.rendering import to_yaml

__all__ = ["Choices", "choose", "to_yaml"]
