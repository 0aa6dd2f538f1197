"""The canary: a small trace that the collector sends to itself, and how long it takes until its
score is there.
"""

from pathgauge.collector.service.canary.canary import PATIENCE_S, TENANT, Canary, WithoutCanary
from pathgauge.collector.service.canary.send import AGENT, Send, export_request, over_socket, within

__all__ = [
    "AGENT",
    "PATIENCE_S",
    "TENANT",
    "Canary",
    "Send",
    "WithoutCanary",
    "export_request",
    "over_socket",
    "within",
]
