"""Invocations in publications, mostly without what agents and users said.

The order of the values in a list is part of the format of publications.
"""

from __future__ import annotations

from typing import Any

from pathgauge.scorers.types import Invocation, Json, ToolCall

MAX_ERROR_CHARS = 200
"""Longer error messages are cut."""


def slim(one: Invocation) -> list[Json]:
    """The invocation without content: no texts, arguments or results, no model calls, sub-agents,
    tool schemas or spans.
    """
    return [
        one.trace_id,
        one.span_id,
        one.dialect,
        one.tenant,
        one.agent,
        one.agent_version,
        one.scenario_id,
        one.conversation_id,
        one.user_id,
        one.run_id,
        one.turn,
        [
            [
                call.name,
                call.kind,
                _cut(call.error),
                call.agent,
                call.group,
                call.start_ns,
                call.end_ns,
            ]
            for call in one.tool_calls
        ],
        one.error,
        one.error_type,
        one.model,
        one.input_tokens,
        one.output_tokens,
        one.start_ns,
        one.end_ns,
        sorted(one.flags),
    ]


def of_slim(values: list[Any]) -> Invocation:
    """The invocation that `slim` has written."""
    (
        trace_id,
        span_id,
        dialect,
        tenant,
        agent,
        agent_version,
        scenario_id,
        conversation_id,
        user_id,
        run_id,
        turn,
        calls,
        error,
        error_type,
        model,
        input_tokens,
        output_tokens,
        start_ns,
        end_ns,
        flags,
    ) = values
    # Positional arguments: keyword arguments would take twice as long.
    return Invocation(
        trace_id,
        span_id,
        dialect,
        tenant,
        agent,
        agent_version,
        scenario_id,
        conversation_id,
        user_id,
        run_id,
        turn,
        None,
        tuple(
            [
                ToolCall(name, None, None, None, failed, by, None, kind, group, start, end)
                for name, kind, failed, by, group, start, end in calls
            ]
        ),
        (),
        (),
        None,
        error,
        error_type,
        model,
        input_tokens,
        output_tokens,
        {},
        start_ns,
        end_ns,
        frozenset(flags),
    )


def _cut(error: str | None) -> str | None:
    return error if error is None else error[:MAX_ERROR_CHARS]
