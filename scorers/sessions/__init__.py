"""Scorers of whole sessions that ask no model."""
