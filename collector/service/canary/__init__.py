"""The canary: a small trace that the collector regularly sends to itself, to measure the delay
until the trace is scored.
"""

from pathgauge.collector.core.evaluations.accounting import CANARY_TENANT as TENANT
from pathgauge.collector.service.canary.canary import MAX_DELAY_S, Canary, WithoutCanary
from pathgauge.collector.service.canary.send import AGENT, Send, export_request, over_socket, within

__all__ = [
    "AGENT",
    "MAX_DELAY_S",
    "TENANT",
    "Canary",
    "Send",
    "WithoutCanary",
    "export_request",
    "over_socket",
    "within",
]
