"""Wraps the Prometheus rules for the Prometheus operator: `deploy/prometheus/rules.yml` comes in,
`base/prometheus-rule.yaml` goes out.

`make manifests` runs it; a test compares.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

FOLDER = Path(__file__).parent
RULES = FOLDER.parent / "prometheus" / "rules.yml"
HEADER = """\
# Made of deploy/prometheus/rules.yml by `make manifests`. For the Prometheus operator.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: pathgauge
spec:
"""


def text() -> str:
    """The manifest; the rules stay as they were written."""
    _, key, groups = RULES.read_text().partition("\ngroups:")
    return HEADER + indent(f"{key.strip()}{groups}", "  ")


if __name__ == "__main__":
    (FOLDER / "base" / "prometheus-rule.yaml").write_text(text())
