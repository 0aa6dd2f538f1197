"""Differential tests: the scorers beside independent packages that measure the same."""
