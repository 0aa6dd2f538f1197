"""Drift without references as series of `/metrics`: what is observed, stored and shown."""
