"""Programs that ask one package each, and know nothing of pathgauge: `python -m
oracles.runners.NAME`, where the package is installed.
"""
