"""Scorers of agents. Each compares an `Invocation` with the `ReferenceTurn` of its scenario.

The package does not depend on the collector. Import the public names from `pathgauge`.
"""
