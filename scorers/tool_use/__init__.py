"""Scorers of what an agent did, by rules that hold whatever the reference says."""
