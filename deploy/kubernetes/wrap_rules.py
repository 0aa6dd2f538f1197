"""Writes `prometheus-rule.yaml` of `base` and `cluster`: `deploy/prometheus/rules.yml` for the
Prometheus operator. `make manifests` runs it; a test checks that the result is up to date.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

FOLDER = Path(__file__).parent
RULES = FOLDER.parent / "prometheus" / "rules.yml"
HEADER = """\
# Generated from deploy/prometheus/rules.yml by `make manifests`. For the Prometheus operator.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: pathgauge
spec:
"""


def text() -> str:
    """The manifest. The text of the rules is copied, so that it keeps its layout."""
    _, key, groups = RULES.read_text().partition("\ngroups:")
    return HEADER + indent(f"{key.strip()}{groups}", "  ")


if __name__ == "__main__":
    for name in ("base", "cluster"):
        (FOLDER / name / "prometheus-rule.yaml").write_text(text())
