"""Keeps the process below the memory limit that it runs under."""
