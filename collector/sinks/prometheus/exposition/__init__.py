"""Writes what `/metrics` shows, and keeps what did not change since the last scrape."""
