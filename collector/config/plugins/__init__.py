"""Finds plug-ins: scorers, dialects, sinks and reference formats.

Each kind has one registry: the entry points of one group in the installed packages. Built-in
plug-ins are entry points of pathgauge's own package, so they register as third-party ones do.
"""
