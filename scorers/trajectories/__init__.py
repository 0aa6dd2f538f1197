"""Scorers that compare tool calls with those of the reference."""
