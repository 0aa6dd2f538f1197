"""Runs the core over trace files without a service: replay, gate, record, judge check."""
