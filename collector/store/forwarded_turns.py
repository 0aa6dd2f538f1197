"""Encodes turns that are on their way to another scorer, with their content."""

from __future__ import annotations

from dataclasses import replace

import orjson
import zstandard

from pathgauge.collector.core.evaluations.invocation_json import from_json, to_json
from pathgauge.collector.core.otlp.batch import Batch, Origin, Relayed
from pathgauge.collector.core.pipeline_events import ForwardedTurn, SessionNews

_LEVEL = 1
_MAX_DECODED_BYTES = 256 << 20


def encode(turn: ForwardedTurn) -> bytes:
    """The turn as compressed JSON. Its target is not part of it."""
    values: list[object] = [turn.key, turn.closed_by, turn.revision, turn.void]
    session = turn.session and [turn.session.conversation, dict(turn.session.scores)]
    if turn.joins:
        values += [session, turn.at, turn.joins]
    elif turn.at is not None:
        values += [session, turn.at]
    elif session is not None:
        values.append(session)
    known = orjson.dumps(values)
    content = b"" if turn.invocation is None else to_json(turn.invocation)
    return zstandard.ZstdCompressor(level=_LEVEL).compress(known + b"\n" + content)


def decode(body: bytes) -> ForwardedTurn:
    """The turn. One that an earlier version has written has no time. Raises `ValueError` if an
    incompatible version wrote it, and `ZstdError` for damaged bytes.
    """
    text = zstandard.decompress(body, max_output_size=_MAX_DECODED_BYTES)
    known, _, content = text.partition(b"\n")
    (tenant, trace_id, span_id), closed_by, revision, void, *more = orjson.loads(known)
    session, at, joins = (*more, None, None, None)[:3]
    turn = ForwardedTurn(
        (tenant, trace_id, span_id),
        closed_by=closed_by,
        revision=revision,
        void=void,
        session=None if session is None else SessionNews(*session),
        at=at,
        joins=bool(joins),
    )
    if not content:
        return turn
    return replace(turn, invocation=from_json(content))


def batch_of_turn(body: bytes, relayed: Relayed | None = None) -> Batch:
    """The turn as what the journal keeps. Raises as `decode` does."""
    turn = decode(body)
    origin = Origin(turn.key[0], "grpc", "traces", "protobuf")
    return Batch(origin, body, turn=turn, relayed=relayed)
