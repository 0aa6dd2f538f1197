"""Scorers that ask a model.

A judge does no I/O: the caller passes it an `Ask`. `pathgauge.scorers.judges.model_client` has one
for OpenAI-compatible servers.
"""
