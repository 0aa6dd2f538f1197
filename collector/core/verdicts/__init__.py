"""Whether one version of an agent is better or worse than another.

Results of both versions are paired within each scenario (`pairing.py`). The differences of the
pairs give a confidence interval that is valid whenever it is looked at (`confidence.py`), and the
intervals of all metrics give the verdict (`release.py`).
"""
