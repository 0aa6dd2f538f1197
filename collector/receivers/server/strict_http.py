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
    "ambiguous_length", "bare_line_feed", "head_too_large", "malformed"
]
"""Why a request is answered with 400. A closed set, because it is a metric label."""

MESSAGES: dict[InvalidRequest, str] = {
    "ambiguous_length": (
        "found Transfer-Encoding together with Content-Length, or in HTTP/1.0; expected one length"
    ),
    "bare_line_feed": "found a line that ends with LF; expected CRLF",
    "head_too_large": "the head of the request is too large",
    "malformed": "Invalid HTTP request received.",
}

_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_FIRST_WITH_CHUNKS = b"1.1"
_TOO_LARGE = 431


class StrictConnection(h11.Connection):
    """The server's side of one connection."""

    def __init__(self, max_head_bytes: int) -> None:
        super().__init__(h11.SERVER, max_head_bytes)
        self.invalid: InvalidRequest = "malformed"
        """What was wrong, after `next_event` has raised an error."""
        # The buffer finds the ends of lines, and h11 has no other way to change that.
        self._receive_buffer = _StrictBuffer()

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event. Raises `h11.RemoteProtocolError`."""
        try:
            event = super().next_event()
            if isinstance(event, h11.Request) and _is_ambiguous(event):
                raise _InvalidError("ambiguous_length")
        except _InvalidError as error:
            self.invalid = error.reason
            raise
        except h11.RemoteProtocolError as error:
            self.invalid = (
                "head_too_large" if error.error_status_hint == _TOO_LARGE else "malformed"
            )
            raise
        return event


class _InvalidError(h11.RemoteProtocolError):
    def __init__(self, reason: InvalidRequest) -> None:
        super().__init__(MESSAGES[reason])
        self.reason = reason


class _StrictBuffer(ReceiveBuffer):
    def __init__(self) -> None:
        super().__init__()
        self._extracted = bytearray()

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """The lines of a head or of trailers, once they are complete."""
        lines = super().maybe_extract_lines()
        if lines is not None and _BARE_LINE_FEED.search(self._extracted):
            raise _InvalidError("bare_line_feed")
        return lines

    def _extract(self, count: int) -> bytearray:
        self._extracted = super()._extract(count)
        return self._extracted


def _is_ambiguous(request: h11.Request) -> bool:
    names = {name for name, _ in request.headers}
    return b"transfer-encoding" in names and (
        b"content-length" in names or request.http_version < _FIRST_WITH_CHUNKS
    )
