"""Sessions as JSON, with the content of their turns: for judges.

It is the JSON of the invocation that stands for the session, with one more key at its end. So
whatever reads an invocation can read it.
"""

from __future__ import annotations

import json

import orjson

from pathgauge.collector.core.evaluations.evaluator import SessionResult
from pathgauge.collector.core.evaluations.invocation_json import from_json, to_json
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.types import Invocation

_KEY = b',"session_of":'


def session_to_json(invocation: Invocation, session: SessionResult) -> bytes:
    """The session as JSON on one line."""
    known = orjson.dumps(
        [session.ended_by, session.members, [dict(t.scores) for t in session.turns]]
    )
    turns = b",".join(to_json(turn.invocation) for turn in session.turns)
    return b"%s%s[%s,[%s]]}" % (to_json(invocation)[:-1], _KEY, known, turns)


def is_session(body: bytes) -> bool:
    """Whether `session_to_json` has written this, and not `to_json` alone."""
    return body.endswith(b"]]}") and _KEY in body


def session_from_json(body: bytes) -> SessionResult:
    """The session. Raises `ValueError` if an incompatible version of pathgauge wrote it."""
    try:
        (ended_by, members, scores), turns = json.loads(body)["session_of"]
        invocations = [from_json(json.dumps(turn).encode()) for turn in turns]
        return SessionResult(
            ended_by,
            tuple((trace_id, span_id) for trace_id, span_id in members),
            tuple(map(SessionTurn, invocations, scores)),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"a session of another version of pathgauge: {error!r}") from error
