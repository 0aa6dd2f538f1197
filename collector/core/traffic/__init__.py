"""Drift without references: finds agents whose tool calls changed. Start with `drift.py`."""
