"""Rebuilds a trace from evidence, in the GenAI semantic conventions.

The spans of a trace are deleted once it has been scored, but its evidence says what was read from
them. Reading the rebuilt spans gives the same agents, tool calls, texts, errors and tokens. So
`pathgauge score` and `pathgauge record` work on an invocation long after its spans are gone. The
entry span states the flags: that spans were lost is not to be seen in those that are rebuilt.
Attributes that pathgauge does not read are lost, and so is what the evidence has cut.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto, Status

from pathgauge.collector.core.evidence.evidence import Evidence
from pathgauge.collector.core.evidence.rebuilt_messages import (
    asked_id,
    asked_part,
    json_text,
    messages,
    sendable,
    texts,
)
from pathgauge.collector.core.invocations.rebuilt import FLAGS, SCOPE
from pathgauge.collector.core.invocations.scenario import DEFAULT_KEYS, RUN_KEYS, TURN
from pathgauge.collector.core.invocations.session_end import KEY as SESSION_END
from pathgauge.collector.core.otlp.spans import Resource, Span, encode_attributes
from pathgauge.scorers.types import AgentRun, Invocation, ModelCall, ToolCall, total_tokens

_ID_BYTES = 8
_Times = tuple[int | None, int | None]


def trace_of(evidence: Evidence) -> list[Span]:
    """The spans of the invocation: the entry agent, then sub-agents, model calls and tool calls."""
    return list(_Builder(evidence.invocation).spans())


class _Builder:
    """Builds the spans of one invocation."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._resource = Resource({"service.name": sendable(invocation.agent or "pathgauge")})
        self._trace_state = _trace_state(invocation.scenario_id)
        self._runs = {run.span_id for run in invocation.sub_agents}
        self._call_of = _calls_by_run(invocation)
        """By the span id of a sub-agent, the number of the call that started it."""
        self._answers = {run.span_id: run.final_response for run in invocation.sub_agents}
        self._last_calls = {self._run_of(one.run): one.span_id for one in invocation.model_calls}

    def spans(self) -> Iterator[Span]:
        """All spans, each after its parent."""
        yield self._entry()
        for number, call in enumerate(self._invocation.tool_calls):
            if _has_span(call):
                yield self._tool(number, call)
        yield from map(self._sub_agent, self._invocation.sub_agents)
        asked = _asked_calls(self._invocation)
        for group, model_call in enumerate(self._invocation.model_calls):
            yield self._model(model_call, asked[group])

    def _entry(self) -> Span:
        one = self._invocation
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": one.agent,
            "gen_ai.agent.version": one.agent_version,
            "gen_ai.conversation.id": one.conversation_id,
            "user.id": one.user_id,
            DEFAULT_KEYS[0]: one.scenario_id,
            TURN: one.turn,
            RUN_KEYS[1]: one.run_id,
            SESSION_END: one.session_end,
            FLAGS: " ".join(sorted(one.flags)),
            **texts(one.user_input, one.final_response),
            "error.type": one.error_type if one.error else None,
        }
        if total_tokens(one.model_calls) == (None, None):
            attributes["gen_ai.usage.input_tokens"] = one.input_tokens
            attributes["gen_ai.usage.output_tokens"] = one.output_tokens
        error = (one.error_type or "error") if one.error else None
        name = f"invoke_agent {one.agent or ''}".rstrip()
        times = one.start_ns, one.end_ns
        return self._span((one.span_id, ""), name, attributes, times, error)

    def _sub_agent(self, run: AgentRun) -> Span:
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": run.agent,
            **texts(run.user_input, run.final_response),
            "error.type": run.error_type if run.error is not None else None,
        }
        started_by = self._call_of.get(run.span_id)
        above = run.parent_run if run.parent_run != run.span_id else None
        parent = self._run_of(above) if started_by is None else self._call_id(started_by)
        name = f"invoke_agent {run.agent or ''}".rstrip()
        times = run.start_ns, run.end_ns
        return self._span((run.span_id, parent), name, attributes, times, run.error)

    def _tool(self, number: int, call: ToolCall) -> Span:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": asked_id(number, call),
            "gen_ai.tool.call.arguments": json_text(call.arguments),
            "gen_ai.tool.call.result": json_text(call.result),
            "gen_ai.transfer.mode": _TRANSFERS.get(call.kind),
        }
        start_ns = call.start_ns or self._asked_at(call)
        times = start_ns, call.end_ns or start_ns
        name = f"execute_tool {call.name}"
        parent = self._run_of(call.run)
        return self._span((self._call_id(number), parent), name, attributes, times, call.error)

    def _model(self, call: ModelCall, asked: Sequence[tuple[int, ToolCall]]) -> Span:
        parts = [asked_part(number, one) for number, one in asked]
        text = self._text(call)
        if text:
            parts.insert(0, {"type": "text", "content": text})
        reason = "tool_call" if asked else "stop"
        if not asked and self._lacks_calls(call):
            reason = "tool_calls"  # read as: there were calls, which are not recorded
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.response.model": call.model,
            "gen_ai.usage.input_tokens": call.input_tokens,
            "gen_ai.usage.output_tokens": call.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": call.cached_tokens,
            "gen_ai.usage.cache_creation.input_tokens": call.cache_write_tokens,
            "gen_ai.output.messages": messages("assistant", parts, reason) if parts else None,
        }
        if call.error is None:
            attributes["gen_ai.response.finish_reasons"] = [reason]
        name = f"chat {call.model or ''}".rstrip()
        times = call.start_ns, call.end_ns
        parent = self._run_of(call.run)
        return self._span((call.span_id, parent), name, attributes, times, call.error)

    def _text(self, call: ModelCall) -> str | None:
        """What the model said. The last model call of an agent is read as its answer, so there it
        must not say anything else.
        """
        run = self._run_of(call.run)
        if self._last_calls[run] != call.span_id:
            return call.text
        answer = self._answers.get(run, self._invocation.final_response)
        return answer if call.text else None

    def _lacks_calls(self, call: ModelCall) -> bool:
        is_first = call is self._invocation.model_calls[0]
        return is_first and "no_tool_spans" in self._invocation.flags

    def _run_of(self, run: str | None) -> str:
        """The span id of a sub-agent, or of the entry agent for all others."""
        return run if run is not None and run in self._runs else self._invocation.span_id

    def _asked_at(self, call: ToolCall) -> int | None:
        """When the model asked for a call without times."""
        calls = self._invocation.model_calls
        if call.group is not None and call.group < len(calls):
            return calls[call.group].end_ns
        return self._invocation.start_ns

    def _call_id(self, number: int) -> str:
        """A span id for a tool call, the same in every export."""
        key = f"{self._invocation.span_id} {number}".encode()
        return hashlib.blake2b(key, digest_size=_ID_BYTES).hexdigest()

    def _span(
        self,
        ids: tuple[str, str],
        name: str,
        attributes: Mapping[str, Any],
        times: _Times,
        error: str | None,
    ) -> Span:
        """A span; `ids` are its own and that of its parent."""
        known = {
            key: sendable(value) if isinstance(value, str) else value
            for key, value in attributes.items()
            if value is not None
        }
        proto = SpanProto(
            trace_id=bytes.fromhex(self._invocation.trace_id),
            span_id=bytes.fromhex(ids[0]),
            parent_span_id=bytes.fromhex(ids[1]),
            trace_state=self._trace_state,
            name=sendable(name),
            start_time_unix_nano=times[0] or 0,
            end_time_unix_nano=times[1] or 0,
            attributes=encode_attributes(known),
        )
        if error is not None:
            status = Status(code=Status.STATUS_CODE_ERROR, message=sendable(error))
            proto.status.CopyFrom(status)
        raw = proto.SerializeToString()
        return Span(raw, self._resource, SCOPE, self._invocation.tenant, proto)


def _trace_state(scenario: str | None) -> str:
    """The scenario id once more: the configuration may name other attributes for it."""
    return "" if scenario is None else f"pathgauge=c:{quote(sendable(scenario), safe='')}"


_TRANSFERS = {"handoff": "pass_control", "agent": "return_to_caller"}


def _calls_by_run(invocation: Invocation) -> dict[str, int]:
    """By the span id of each sub-agent that was called like a tool, the number of the call: one of
    its caller, during which it ran.
    """
    free: dict[str | None, list[tuple[int, ToolCall]]] = defaultdict(list)
    for number, call in enumerate(invocation.tool_calls):
        if call.kind == "agent":
            free[call.run].append((number, call))
    found: dict[str, int] = {}
    for run in invocation.sub_agents:
        if run.via != "agent":
            continue
        candidates = free[run.parent_run]
        around = next((one for one in candidates if _encloses(one[1], run)), None)
        if around is not None:
            candidates.remove(around)
            found[run.span_id] = around[0]
    return found


def _encloses(call: ToolCall, run: AgentRun) -> bool:
    if None in (call.start_ns, call.end_ns, run.start_ns, run.end_ns):
        return False
    return call.start_ns <= run.start_ns <= run.end_ns <= call.end_ns  # type: ignore[operator]


def _has_span(call: ToolCall) -> bool:
    """Whether a call has more than what a model message says."""
    return (
        call.group is None
        or call.start_ns is not None
        or call.result is not None
        or call.error is not None
    )


def _asked_calls(invocation: Invocation) -> Mapping[int, Sequence[tuple[int, ToolCall]]]:
    """The tool calls by the number of the model call that asked for them."""
    found: dict[int, list[tuple[int, ToolCall]]] = defaultdict(list)
    for number, call in enumerate(invocation.tool_calls):
        if call.group is not None:
            found[call.group].append((number, call))
    return found
