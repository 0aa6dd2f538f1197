"""Parses HTTP/1.1, without the leniency that lets two servers read one connection differently.

A proxy in front may see one request where a lenient parser sees two; the second one then passes
the checks of the proxy unseen (request smuggling). h11 accepts lines that end with a bare line feed
and requests with two lengths, as RFC 9112 permits; this parser does not.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import h11
from h11._receivebuffer import ReceiveBuffer

InvalidRequest: TypeAlias = Literal[
    "ambiguous_length", "bare_line_feed", "head_too_large", "http2", "malformed", "tiny_chunks"
]
"""Why a request is answered with 400. A closed set, because it is a metric label."""

MESSAGES: dict[InvalidRequest, str] = {
    "ambiguous_length": (
        "found Transfer-Encoding together with Content-Length, or in HTTP/1.0; expected one length"
    ),
    "bare_line_feed": "found a line that ends with LF; expected CRLF",
    "head_too_large": "the head of the request is too large",
    "http2": (
        "found HTTP/2, which gRPC speaks; expected HTTP/1.1. OTLP over gRPC has a port of its own,"
        " 4317 by default"
    ),
    "malformed": "Invalid HTTP request received.",
    "tiny_chunks": (
        "found a body of many tiny chunks; expected at least 64 bytes in each, on average"
    ),
}

_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_FIRST_WITH_CHUNKS = b"1.1"
_VERSIONS = (b"1.0", _FIRST_WITH_CHUNKS)
_HTTP2_PREFACE = b"PRI"
"""The method of the request that opens a connection of HTTP/2 (RFC 9113 section 3.4)."""
_TOO_LARGE = 431
_FREE_CHUNKS, _MIN_CHUNK_BYTES = 1_024, 64
"""Each chunk takes 16 us, during which no other request is served. Beyond the first ones, chunks
must have this many bytes on average.
"""


class StrictConnection(h11.Connection):
    """The server's side of one connection."""

    def __init__(self, max_head_bytes: int) -> None:
        super().__init__(h11.SERVER, max_head_bytes)
        self._chunks = 0
        self._chunk_bytes = 0
        self.invalid: InvalidRequest = "malformed"
        """What was wrong, after `next_event` has raised an error."""
        # The buffer finds the ends of lines, and h11 has no other way to change that.
        self._receive_buffer = _StrictBuffer(max_head_bytes)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event. Raises `h11.RemoteProtocolError`."""
        try:
            event = super().next_event()
            if isinstance(event, h11.Request):
                _check(event)
                self._chunks = self._chunk_bytes = 0
            elif isinstance(event, h11.Data):
                self._check_chunk(event)
        except _InvalidError as error:
            self.invalid = error.reason
            raise
        except h11.RemoteProtocolError as error:
            self.invalid = (
                "head_too_large" if error.error_status_hint == _TOO_LARGE else "malformed"
            )
            raise
        return event

    def _check_chunk(self, data: h11.Data) -> None:
        self._chunks += data.chunk_end
        self._chunk_bytes += len(data.data)
        if self._chunks > _FREE_CHUNKS + self._chunk_bytes // _MIN_CHUNK_BYTES:
            raise _InvalidError("tiny_chunks")


class _InvalidError(h11.RemoteProtocolError):
    def __init__(self, reason: InvalidRequest) -> None:
        super().__init__(MESSAGES[reason])
        self.reason = reason


class _StrictBuffer(ReceiveBuffer):
    def __init__(self, max_head_bytes: int) -> None:
        super().__init__()
        self._max_head_bytes = max_head_bytes
        self._extracted = bytearray()

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """The lines of a head or of trailers, once they are complete."""
        lines = super().maybe_extract_lines()
        if lines is None:
            return None
        if len(self._extracted) > self._max_head_bytes:  # h11 looks at incomplete heads only
            raise _InvalidError("head_too_large")
        if _BARE_LINE_FEED.search(self._extracted):
            raise _InvalidError("bare_line_feed")
        return lines

    def _extract(self, count: int) -> bytearray:
        self._extracted = super()._extract(count)
        return self._extracted


def _check(request: h11.Request) -> None:
    if request.method == _HTTP2_PREFACE:
        raise _InvalidError("http2")
    if request.http_version not in _VERSIONS:
        raise _InvalidError("malformed")
    if _is_ambiguous(request):
        raise _InvalidError("ambiguous_length")


def _is_ambiguous(request: h11.Request) -> bool:
    names = {name for name, _ in request.headers}
    return b"transfer-encoding" in names and (
        b"content-length" in names or request.http_version < _FIRST_WITH_CHUNKS
    )
