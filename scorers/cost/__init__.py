"""Scorers of the run itself: failures, tokens, calls and time."""
