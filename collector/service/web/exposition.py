"""The answer to a scrape: the format and encoding that the scraper asked for.

The text is made in parts, and is never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse

from pathgauge.collector.sinks.prometheus.exposition.blocks import (
    Block,
    all_compressed,
    gzipped,
    inflated,
)
from pathgauge.collector.sinks.prometheus.exposition.registry import END, parts_of
from pathgauge.collector.sinks.prometheus.exposition.text import Form

SENT_BYTES = 1 << 18
"""Text that is not compressed is sent in steps of about this size."""


def exposition(collector: Collector, request: Headers) -> Response:
    """The metrics, for a request with these headers. Only one thread at a time may call it."""
    content_type, parts = _parts(collector, request.get("accept", ""))
    blocks = tuple(all_compressed(parts))
    headers = {"content-type": content_type, "vary": "accept, accept-encoding"}
    if gzip_accepted(request.get("accept-encoding", "")):
        headers["content-encoding"] = "gzip"
        return Response(gzipped(blocks), headers=headers)
    headers["content-length"] = str(sum(block.size for block in blocks))
    return StreamingResponse(_sent(blocks), headers=headers)


def _parts(collector: Collector, accept: str) -> tuple[str, Iterator[bytes | Block]]:
    """The content type, and the text in parts."""
    try:
        encode, content_type = choose_encoder(accept)
    except TypeError:  # the version in the header is not a number
        encode, content_type = choose_encoder("")
    form: Form = "text"
    if isinstance(encode, partial):
        if _changes_names(encode):
            return content_type, iter([encode(collector)])
        if encode.func is openmetrics.generate_latest:
            form = "openmetrics"
    return content_type, _ended(parts_of(collector, form), form)


def _changes_names(encode: partial[bytes]) -> bool:
    """Whether the scraper asked for names that are written in another way than ours."""
    return encode.keywords.get("escaping") == openmetrics.DOTS


def _ended(parts: Iterator[bytes | Block], form: Form) -> Iterator[bytes | Block]:
    yield from parts
    if form == "openmetrics":
        yield END


def _sent(blocks: Iterable[Block]) -> Iterator[bytes]:
    """The text in steps."""
    step: list[bytes] = []
    size = 0
    for block in blocks:
        step.append(inflated(block))
        size += block.size
        if size >= SENT_BYTES:
            yield b"".join(step)
            step.clear()
            size = 0
    yield b"".join(step)
