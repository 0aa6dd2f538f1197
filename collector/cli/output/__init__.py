"""Prints results: tables, reports in HTML and Markdown, JUnit XML, JSON, CSV, and trajectories side
by side.
"""
