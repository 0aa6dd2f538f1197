"""How well an agent did: each scorer compares an `Invocation` with the `ReferenceTurn` of its
scenario.

The package works without the collector. Import the public names from `pathgauge`.
"""
