"""Compares two trajectories; the trajectory scorers are built on it."""
