"""OTLP export requests in, spans and log records out; what cannot be read is rejected alone and
counted.
"""

from pathgauge.collector.core.otlp.decode import (
    Decoded,
    decode_logs,
    decode_logs_json,
    decode_traces,
    decode_traces_json,
)
from pathgauge.collector.core.otlp.request import Encoding, Limits, Reason, Signal, UndecodableError

__all__ = [
    "Decoded",
    "Encoding",
    "Limits",
    "Reason",
    "Signal",
    "UndecodableError",
    "decode_logs",
    "decode_logs_json",
    "decode_traces",
    "decode_traces_json",
]
