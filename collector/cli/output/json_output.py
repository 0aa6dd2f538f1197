"""Invocations and evaluations as JSON objects, for `pathgauge invocations` and `score --json`.

Unknown values are `null`; no key is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from pathgauge.collector.core.evaluations.evaluator import Evaluation, Result
from pathgauge.scorers.types import AgentRun, Invocation, Json, ToolCall


def invocation_object(invocation: Invocation, source: str) -> dict[str, Json]:
    """An invocation as the collector understood it; `source` is the path of its trace file."""
    return {
        "source": source,
        "trace_id": invocation.trace_id,
        "span_id": invocation.span_id,
        "dialect": invocation.dialect,
        "agent": invocation.agent,
        "agent_version": invocation.agent_version,
        "scenario_id": invocation.scenario_id,
        "conversation_id": invocation.conversation_id,
        "user_id": invocation.user_id,
        "run_id": invocation.run_id,
        "turn": invocation.turn,
        "user_input": invocation.user_input,
        "tool_calls": [_tool_call(call) for call in invocation.tool_calls],
        "sub_agents": [_sub_agent(run) for run in invocation.sub_agents],
        "final_response": invocation.final_response,
        "error": invocation.error,
        "error_type": invocation.error_type,
        "model": invocation.model,
        "input_tokens": invocation.input_tokens,
        "output_tokens": invocation.output_tokens,
        "duration_s": invocation.duration_s,
        "flags": sorted(invocation.flags),
    }


def _sub_agent(run: AgentRun) -> dict[str, Json]:
    return {
        "span_id": run.span_id,
        "agent": run.agent,
        "parent": run.parent,
        "via": run.via,
        "user_input": run.user_input,
        "final_response": run.final_response,
        "error": run.error,
    }


def _tool_call(call: ToolCall) -> dict[str, Json]:
    return {
        "id": call.id,
        "name": call.name,
        "kind": call.kind,
        "arguments": call.arguments,
        "result": call.result,
        "error": call.error,
        "agent": call.agent,
    }


def evaluation_object(evaluation: Evaluation, source: str) -> dict[str, Json]:
    """An invocation with its reference and the result of every criterion."""
    match = evaluation.match
    return {
        **invocation_object(evaluation.invocation, source),
        "reference": {
            "scenario_id": match.reference.scenario_id if match.reference else None,
            "version": match.reference.version if match.reference else None,
            "turn": match.turn_index,
            "unmatched": match.unmatched,
        },
        "results": {result.criterion.name: result_object(result) for result in evaluation.results},
    }


def result_object(result: Result) -> Mapping[str, Json]:
    """One score with its verdict and details."""
    return {
        "score": result.score.value,
        "verdict": result.verdict,
        "threshold": result.criterion.threshold,
        "reason": result.score.reason,
        "explanation": result.score.explanation,
        "details": dict(result.score.details),
    }


def json_line(value: Json) -> bytes:
    """JSON text in UTF-8. Values unknown to JSON become text; infinity and NaN become `null`."""
    # A lone surrogate has no UTF-8 form; its escape is the same in Python and in JSON.
    return json.dumps(_plain(value), ensure_ascii=False).encode("utf-8", "backslashreplace")


def _plain(value: Json) -> Json:
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)
