"""Prints results: tables, JUnit XML, JSON, and trajectories side by side."""
