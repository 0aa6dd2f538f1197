"""A hash of an invocation's content, stable across processes.

It tells whether late spans changed an invocation that was already evaluated.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

from pathgauge.scorers.authoring.extras import SpanRecord
from pathgauge.scorers.types import AgentRun, Invocation, ModelCall, ToolCall

_MARSHALLED = 2
"""The version of marshal's format. Later versions encode reference counts, so equal values would
have different bytes.
"""

_HASHED_AT_ONCE = 2_000
"""Bytes. From 2,048 on, hashlib lets other threads run meanwhile. Then the pipeline has to wait for
the interpreter lock, for many times as long as it hashes.
"""

_PARTS = ("tool_calls", "sub_agents", "model_calls", "tool_schemas", "flags", "spans")
"""Fields that marshal does not support, or would not write in a stable order."""


def _values_of(kind: type, without: tuple[str, ...] = ()) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*(field.name for field in fields(kind) if field.name not in without))


_of_invocation = _values_of(Invocation, _PARTS)
_of_tool_call = _values_of(ToolCall, ("arguments",))
_of_run = _values_of(AgentRun)
_of_model_call = _values_of(ModelCall)
_of_span = _values_of(SpanRecord, ("attributes",))


def fingerprint(invocation: Invocation) -> str:
    """24 hex digits. Marshalling takes about a microsecond and, unlike `repr` and JSON, does not
    recurse in Python.
    """
    plain = (
        _of_invocation(invocation),
        [(_of_tool_call(call), _plain(call.arguments)) for call in invocation.tool_calls],
        [_of_run(run) for run in invocation.sub_agents],
        [_of_model_call(call) for call in invocation.model_calls],
        dict(invocation.tool_schemas),
        sorted(invocation.flags),
        [(_of_span(span), dict(span.attributes)) for span in invocation.spans],
    )
    content = marshal.dumps(plain, _MARSHALLED)
    hashed = hashlib.blake2b(content[:_HASHED_AT_ONCE], digest_size=12)
    for start in range(_HASHED_AT_ONCE, len(content), _HASHED_AT_ONCE):
        hashed.update(content[start : start + _HASHED_AT_ONCE])
    return hashed.hexdigest()


def _plain(arguments: Mapping[str, Any] | str | None) -> dict[str, Any] | str | None:
    return dict(arguments) if isinstance(arguments, Mapping) else arguments
