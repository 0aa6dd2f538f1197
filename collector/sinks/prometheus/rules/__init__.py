"""The choices of an operator come in, the file of recording and alerting rules for Prometheus goes
out.

The rules are not made from a configuration. Thresholds, objectives and intervals are series, so
that one static file serves every configuration; `deploy/prometheus/rules.yml` is what the defaults
give.
"""

from pathgauge.collector.sinks.prometheus.rules.options import ChoiceError, Choices
from pathgauge.collector.sinks.prometheus.rules.rule import Alert, Group, Record
from pathgauge.collector.sinks.prometheus.rules.rule_file import choose, groups, to_yaml

__all__ = ["Alert", "ChoiceError", "Choices", "Group", "Record", "choose", "groups", "to_yaml"]
