"""Finds out when scores become worse, and since when, without knowing how they vary.

Start reading with `detector.py` (the evidence), `series.py` (one series of scores) and
`registry.py` (all of them). State is exported as plain JSON values and continues exactly after a
restart.
"""
