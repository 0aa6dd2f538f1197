"""Scorers of the final response."""
