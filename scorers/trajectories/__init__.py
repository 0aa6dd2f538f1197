"""Scorers of the tool calls beside those of the reference."""
