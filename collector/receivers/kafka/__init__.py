"""Kafka as the durable log between gateways and scorers.

A gateway produces each request to a topic, split by trace id; the scorers of a consumer group share
the partitions. Positions are kept where the results are kept, so Kafka's own offsets are not used.
"""

from __future__ import annotations


class LogError(OSError):
    """The log cannot be used; the message is for the operator."""
