"""An invocation as its own spans show it, and what they leave open.

Instrumentations write nothing for a tool that was not called, and some write nothing for an empty
answer. One invocation alone does not tell this from telemetry that lacks tool calls or answers. It
is settled by what other invocations of the same agent version have shown. The same goes for an
invocation without model calls: few agents work without a model, and lost spans look alike.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from pathgauge.scorers.types import Flag, Invocation

Record = Literal["tools", "arguments", "results", "inputs", "responses", "usage", "models"]
"""What telemetry can hold. `tools`: spans of tool calls; those in messages do not count, because
they are missing as soon as content is switched off. `models`: spans of model calls. New ones are
added at the end, because the store knows them by their position.
"""
RECORDS: tuple[Record, ...] = get_args(Record)


@dataclass(frozen=True, slots=True)
class Doubts:
    """What is not recorded, although nothing shows that the telemetry lacks it. By record, the
    flags that were set for no other reason.
    """

    flags: Mapping[Record, frozenset[Flag]]


NO_DOUBTS = Doubts({})


@dataclass(frozen=True, slots=True)
class Reading:
    """An invocation before its doubts are settled."""

    invocation: Invocation
    shown: frozenset[Record] = frozenset()
    """What the spans of this invocation show."""
    doubts: Doubts = NO_DOUBTS
    lacks: Mapping[Record, frozenset[Flag]] = field(default_factory=dict)
    """By record, the flags of an invocation without it, if its agent version has shown it."""

    def settled(self, known: Collection[Record]) -> Invocation:
        """The invocation of an agent whose telemetry is `known` to hold these records: what is
        missing of them did not happen, except what it `lacks`.
        """
        certain, lacked = self.doubts.flags.keys() & known, self.lacks.keys() & known
        if not certain and not lacked:
            return self.invocation
        dropped: frozenset[Flag] = frozenset().union(*map(self.doubts.flags.__getitem__, certain))
        added: frozenset[Flag] = frozenset().union(*map(self.lacks.__getitem__, lacked))
        answer = "" if "responses" in certain else self.invocation.final_response
        flags = self.invocation.flags - dropped | added
        return replace(self.invocation, final_response=answer, flags=flags)


def shown_by(invocation: Invocation, *, tool_spans: bool) -> frozenset[Record]:
    """The records that an invocation shows. `tool_spans`: whether it has a span of a tool call."""
    calls = invocation.tool_calls
    shown: Mapping[Record, bool] = {
        "tools": tool_spans,
        "arguments": any(call.arguments is not None for call in calls),
        "results": any(call.result is not None for call in calls),
        "inputs": invocation.user_input is not None,
        "responses": invocation.final_response is not None,
        "usage": invocation.input_tokens is not None or invocation.output_tokens is not None,
        "models": bool(invocation.model_calls),
    }
    return frozenset(record for record, is_shown in shown.items() if is_shown)
