"""The choices of an operator come in, the file of recording and alerting rules for Prometheus goes out.

The rules are not made from a configuration. Thresholds, objectives and intervals are series, so that one static file serves every
configuration; `deploy/prometheus/rules.yml` is what the defaults give.
"""

from collector.rules.choices import ChoiceError, Choices
from collector.rules.rule import Alert, Group, Record
from collector.rules.rule_file import choose, groups, to_yaml

__all__ = ["Alert", "ChoiceError", "Choices", "Group", "Record", "choose", "groups", "to_yaml"]
