"""Publishes evaluations as the series of `/metrics`, with bounded labels."""
