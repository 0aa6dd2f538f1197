"""Scorers of failures, tokens, calls and time."""
