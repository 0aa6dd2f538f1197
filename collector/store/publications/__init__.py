"""Publications as bytes: scorers write them, the gauge reads them.

A number of the format comes first, so that another version of pathgauge is noticed. Then follow
lines of JSON, compressed together, and the evidence, which is compressed already. Each event has a
line of its own, so that one that cannot be written or read does not affect the others.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from numbers import Real
from typing import Any

import orjson
import structlog
import zstandard

from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.pipeline_events import PublishedEvent
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store.publications.events import (
    content_of,
    event_of,
    is_newer,
    row_of,
)
from pathgauge.collector.store.publications.tables import Resolver, Tables
from pathgauge.scorers.types import Json

_log = structlog.get_logger(__name__)

FORMAT = 4
"""To be changed with every change of what is written."""
_WITH_NEWER = 5
"""The format if results of sessions, or of judges in shadow, are among the events: earlier versions
cannot read them.
"""
_KNOWN_FORMATS = (FORMAT, _WITH_NEWER)
_LEVEL = 1
_HEAD = struct.Struct(">BI")
"""The format, and the size of the compressed lines in bytes."""
_ODD = b"!"
"""Begins a line that orjson cannot read exactly: one with lone surrogates or very large integers.
"""

_CONTENT = b"\t"
"""Begins the content of an invocation, after its event."""


class PublicationError(ValueError):
    """A publication is damaged."""


class UnknownFormatError(ValueError):
    """Another version of pathgauge has written a publication. That version can read it."""


def encode(publication: Publication, *, with_content: bool = False) -> bytes:
    """The publication as bytes; an event that cannot be written is logged and left out.

    Without `with_content`, the invocations lose their texts, arguments, results, model calls and
    sub-agents. Scores never keep their details, except for the numbers that sinks count.
    """
    tables = Tables()
    lines: list[bytes] = []
    evidence: list[tuple[int, bytes]] = []
    for index, event in enumerate(publication.events):
        try:
            line = _event_line(event, tables, with_content)
        except Exception:  # a value of a scorer or a sender must not affect the other events
            _log.exception("an event cannot be published", event_type=type(event).__name__)
            continue
        if index in publication.evidence:
            evidence.append((len(lines), publication.evidence[index]))
        lines.append(line)
    head = [
        publication.wall,
        [[list(key), state] for key, state in publication.counts],
        [[list(key), state] for key, state in publication.records],
        [[index, len(body)] for index, body in evidence],
    ]
    text = b"\n".join([_line(head), tables.to_json(), *lines])
    body = zstandard.ZstdCompressor(level=_LEVEL).compress(text)
    found = _WITH_NEWER if any(map(is_newer, publication.events)) else FORMAT
    return b"".join([_HEAD.pack(found, len(body)), body, *(blob for _, blob in evidence)])


def decode(data: bytes, evaluator: Evaluator, references: ReferenceSet) -> Publication:
    """What `encode` has written. Criteria and references are those of `evaluator` and `references`
    if they are the same, else stand-ins that sinks can use like them.

    Raises `PublicationError` and `UnknownFormatError`. A single event that cannot be read is logged
    and left out.
    """
    lines, blobs = _divided(data)
    try:
        wall, counts, records, sizes = _json(lines[0])
        resolver = Resolver(lines[1], evaluator, references)
    except (ValueError, TypeError, IndexError) as error:
        raise PublicationError(f"found a damaged publication: {error}") from error
    evidence = _evidence(sizes, blobs)
    events: list[PublishedEvent] = []
    kept: dict[int, bytes] = {}
    for index, line in enumerate(lines[2:]):
        try:
            row, _, content = line.partition(_CONTENT)
            event = event_of(_json(row), content, resolver)
        except Exception:
            _log.exception("an event of a publication cannot be read")
            continue
        if index in evidence:
            kept[len(events)] = evidence[index]
        events.append(event)
    return Publication(wall, events, _rows(counts), _rows(records), kept)


def _divided(data: bytes) -> tuple[list[bytes], bytes]:
    """The lines, and the evidence."""
    if not data:
        raise PublicationError("found a damaged publication: it is empty")
    if data[0] not in _KNOWN_FORMATS:
        raise UnknownFormatError(
            f"found a publication of format {data[0]}, expected {FORMAT}: another version of"
            " pathgauge wrote it. It is kept until that version reads it"
        )
    try:
        _, size = _HEAD.unpack_from(data)
        text = zstandard.decompress(data[_HEAD.size : _HEAD.size + size])
    except (struct.error, zstandard.ZstdError) as error:
        raise PublicationError(f"found a damaged publication: {error}") from error
    return text.split(b"\n"), data[_HEAD.size + size :]


def _evidence(sizes: Sequence[tuple[int, int]], blobs: bytes) -> Mapping[int, bytes]:
    ends = [*accumulate((size for _, size in sizes), initial=0)]
    if ends[-1] != len(blobs):
        raise PublicationError(f"found {len(blobs)} bytes of evidence, expected {ends[-1]}")
    return {
        index: blobs[start:end]
        for (index, _), (start, end) in zip(sizes, pairwise(ends), strict=True)
    }


def _event_line(event: PublishedEvent, tables: Tables, with_content: bool) -> bytes:
    line = _line(row_of(event, tables, with_content))
    content = content_of(event) if with_content else None
    return line if content is None else line + _CONTENT + content


def _line(value: Json) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        return _ODD + json.dumps(value, default=_plain).encode()


def _json(line: bytes) -> Any:
    return json.loads(line[1:]) if line[:1] == _ODD else orjson.loads(line)


def _plain(value: object) -> Json:
    """A value of a third-party scorer: a number of another library, or anything."""
    return float(value) if isinstance(value, Real) else repr(value)


def _rows(found: Sequence[Any]) -> list[Row]:
    return [Row(tuple(key), state) for key, state in found]
