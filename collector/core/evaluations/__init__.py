"""Scores invocations against their references, and aggregates scores in windows."""
