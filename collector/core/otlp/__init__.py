"""Decodes OTLP export requests. Invalid records are rejected and counted, valid ones are kept."""

from pathgauge.collector.core.otlp.decode import (
    Decoded,
    decode_logs,
    decode_logs_json,
    decode_traces,
    decode_traces_json,
)
from pathgauge.collector.core.otlp.json_text import parsed_json
from pathgauge.collector.core.otlp.request import (
    DecodeLimits,
    Encoding,
    Reason,
    Signal,
    UndecodableError,
)

__all__ = [
    "DecodeLimits",
    "Decoded",
    "Encoding",
    "Reason",
    "Signal",
    "UndecodableError",
    "decode_logs",
    "decode_logs_json",
    "decode_traces",
    "decode_traces_json",
    "parsed_json",
]
