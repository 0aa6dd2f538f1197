"""Drift of scores as series of `/metrics`: what goes into the detectors, and what comes out."""
