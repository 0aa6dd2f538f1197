"""Reads the agent invocations of a trace: a `Trace` comes in, `Invocation`s in start order go out.

Each invocation is read from its `Group` of spans by the field rules below; every field is resolved on its own over all dialects.
Agents and model calls under a tool span are the work of sub-agents: they count for the trajectory and the tokens, not for the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from collector.dialects import scenario
from collector.dialects.content import ModelContent
from collector.dialects.faults import error_of, error_type
from collector.dialects.genai import has_model_details
from collector.dialects.grouping import Group, groups
from collector.dialects.messages import answer, last_user_text
from collector.dialects.registry import FIELDS, first, muted_keys
from collector.dialects.trajectory import Step, tool_calls
from collector.dialects.tree import Node, Tree
from collector.dialects.values import as_id, as_int, as_text
from collector.spans import LogRecord, Span, Trace
from scorers.types import AgentRun, Flag, Invocation, ModelCall, ToolCall

TURN = "pathgauge.turn"


def read(trace: Trace, scenario_keys: tuple[str, ...] = scenario.DEFAULT_KEYS) -> list[Invocation]:
    """All invocations of a trace; empty when no agent worked in it."""
    logs: dict[str | None, list[LogRecord]] = defaultdict(list)
    for log in sorted(trace.logs, key=lambda log: (log.time_ns, log.raw)):
        logs[log.span_id].append(log)
    return [_Reading(trace, group, logs, scenario_keys).invocation() for group in groups(Tree(trace))]


class _Reading:
    """One group of spans while it is being read."""

    def __init__(self, trace: Trace, group: Group, logs: Mapping[str | None, list[LogRecord]], scenario_keys: tuple[str, ...]) -> None:
        self.trace = trace
        self.group = group
        self.logs = logs
        self.scenario_keys = scenario_keys
        self.flags: set[Flag] = set(group.flags)
        self.steps = [Step(node, self._content(node)) for node in group.nodes if node.kind == "model"]
        self.tools = [node for node in group.nodes if node.kind == "tool"]
        self.agents = [node for node in group.nodes if node.kind == "agent"]
        self.top_steps = [step for step in self.steps if not group.inner(step.node)] or self.steps
        self.top_agents = [node for node in self.agents if not group.inner(node)]

    def invocation(self) -> Invocation:
        """Resolve every field."""
        spans = self._own_spans()
        calls = tool_calls(self.steps, self.tools, muted_keys([step.node.span for step in self.steps]), self.flags)
        user_input, final_response = self._user_input(), self._final_response()
        found = scenario.find(self.group.entry, self.group.nodes, self._member_logs(), self.scenario_keys)
        if found.conflict:
            self.flags.add("scenario_conflict")
        models = tuple(map(_model_call, self.steps))
        input_tokens, output_tokens = self._tokens(models)
        failed = self._failed_spans() or self._unanswered_model_call(final_response)
        start_ns, end_ns = self.group.times()
        self._flag_gaps(calls, user_input, final_response)
        return Invocation(
            trace_id=self.trace.trace_id,
            span_id=self.group.span_id,
            dialect=self._dialect(),
            tenant=self.trace.tenant,
            agent=self._agent_name(),
            agent_version=as_id(first(spans, FIELDS.agent_version)) or as_id(spans[0].resource.attributes.get("service.version")),
            scenario_id=found.scenario_id,
            conversation_id=as_id(first(spans, FIELDS.conversation_id)),
            turn=as_int(first(spans, (TURN,))),
            user_input=user_input,
            tool_calls=calls,
            sub_agents=tuple(self._sub_agents(calls)),
            model_calls=models,
            final_response=final_response,
            error=failed is not None,
            error_type=error_type(failed) if failed else None,
            model=next((model for call in reversed(self.top_steps) if (model := _model_of(call.node))), None),
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            start_ns=start_ns,
            end_ns=end_ns,
            flags=frozenset(self.flags),
        )

    def _content(self, node: Node) -> ModelContent:
        return ModelContent(node, [log for span in node.spans for log in self.logs.get(span.span_id, ())], self.flags)

    def _own_spans(self) -> list[Span]:
        """The spans whose fields speak for the invocation: the anchor, what is not a sub-agent's, then what is above."""
        group = self.group
        own = (node for node in group.nodes if node.kind != "other" and node is not group.entry and not group.inner(node))
        nodes = [group.entry, *own, *group.above()]
        return [span for node in nodes for span in node.spans]

    def _member_logs(self) -> list[LogRecord]:
        return [log for node in self.group.nodes for log in self.logs.get(node.span.span_id, ())]

    def _dialect(self) -> str:
        return self.group.entry.dialect or next((node.dialect for node in self.group.nodes if node.dialect), "genai")

    def _agent_name(self) -> str | None:
        anchor = self.group.anchor
        if anchor is not None and anchor.kind == "agent":
            return anchor.name
        name = next((node.name for node in self.top_agents if node.name), None)
        return name or as_id(first((node.span for node in self.group.nodes), FIELDS.agent_name)) or (anchor.name if anchor else None)

    def _user_input(self) -> str | None:
        own = last_user_text(self._content(self.group.anchor).input) if self.group.anchor else None
        return own or (last_user_text(self.top_steps[0].content.input) if self.top_steps else None)

    def _final_response(self) -> str | None:
        agents = self._answering_agents()
        stated = as_text(first((span for node in agents for span in node.spans), FIELDS.final_response))
        if stated is not None:
            return stated
        if self.top_steps and error_of(self.top_steps[-1].node.spans) is not None:
            return None
        last = answer(self.top_steps[-1].content.output) if self.top_steps else None
        return last or next((text for node in agents if (text := answer(self._content(node).output))), None)

    def _answering_agents(self) -> list[Node]:
        """The anchor, and the agent that was active last, as after a handoff it answers for the whole."""
        anchor = self.group.anchor
        nodes = [anchor] if anchor is not None else []
        return nodes + [node for node in self.top_agents[-1:] if node is not anchor]

    def _failed_spans(self) -> list[Span] | None:
        """The spans of what failed the turn: an agent that answers for it, or the last model call where there is no agent."""
        nodes = [node for node in self._answering_agents() if node.kind == "agent"]
        if not nodes:
            nodes = [self.group.entry, *(step.node for step in self.top_steps[-1:])]
        return next((node.spans for node in nodes if error_of(node.spans) is not None), None)

    def _unanswered_model_call(self, final_response: str | None) -> list[Span] | None:
        """The last model call, when it failed and nobody answered instead: some frameworks end their agent well all the same."""
        last = self.top_steps[-1].node.spans if self.top_steps else []
        return last if last and final_response is None and error_of(last) is not None else None

    def _calls_unknown(self, shown: set[int | None]) -> bool:
        """Whether calls may have been made that the telemetry shows nowhere; `shown` are the model calls whose calls it does show."""
        if not self.steps and not self.tools:
            return True
        for number, step in enumerate(self.steps):
            if step.content.output or number in shown:
                continue
            reasons = first(step.node.spans, ("gen_ai.response.finish_reasons",))
            if "tool" in str(reasons) or (reasons is None and not self.tools):
                return True
        return False

    def _tokens(self, models: Sequence[ModelCall]) -> tuple[int | None, int | None]:
        """Sums over model calls, since agent spans repeat them; the agents' own totals only where no model call says any."""
        sums = _sum(call.input_tokens for call in models), _sum(call.output_tokens for call in models)
        if sums != (None, None):
            return sums
        agents = self.top_agents or self._answering_agents()
        return (
            _sum(as_int(first(node.spans, FIELDS.total_input_tokens)) for node in agents),
            _sum(as_int(first(node.spans, FIELDS.total_output_tokens)) for node in agents),
        )

    def _sub_agents(self, calls: Iterable[ToolCall]) -> Iterable[AgentRun]:
        handed_over = any(call.kind == "handoff" for call in calls)
        main = self.top_agents[0] if self.top_agents else None
        for node in self.agents:
            if node is main:
                continue
            inner = self.group.inner(node)
            via: Literal["agent", "handoff"] = "handoff" if handed_over and not inner else "agent"
            parent = _agent_above(node) or (main.name if main else None)
            yield AgentRun(node.span.span_id, node.name, parent, via, error_of(node.spans), node.span.start_ns, node.span.end_ns)

    def _flag_gaps(self, calls: Sequence[ToolCall], user_input: str | None, final_response: str | None) -> None:
        """Say what the telemetry lacks."""
        silent = self.steps and user_input is None and final_response is None
        if silent or any(call.arguments is None for call in calls):
            self.flags.add("content_missing")
        if self._calls_unknown({call.group for call in calls}):
            self.flags.add("no_tool_spans")
        if any(has_model_details(node.span) for node in self.agents):
            self.flags.add("llm_detail_unreliable")
        if any(span.dropped_attributes for node in self.group.nodes if node.kind != "other" for span in node.spans):
            self.flags.add("dropped_attributes")
        if self.trace.truncated:
            self.flags.add("dropped_spans")
        if self.group.entry.span.end_ns < self.group.entry.span.start_ns:
            self.flags.add("clock_skew")


def _model_call(step: Step) -> ModelCall:
    node = step.node
    return ModelCall(
        span_id=node.span.span_id,
        agent=_agent_above(node),
        model=_model_of(node),
        input_tokens=as_int(first(node.spans, FIELDS.input_tokens)),
        output_tokens=as_int(first(node.spans, FIELDS.output_tokens)),
        error=error_of(node.spans),
        start_ns=node.span.start_ns,
        end_ns=node.span.end_ns,
    )


def _model_of(node: Node) -> str | None:
    return as_id(first(node.spans, FIELDS.response_model)) or as_id(first(node.spans, FIELDS.request_model))


def _agent_above(node: Node) -> str | None:
    """The name of the nearest agent above, workflows passed over."""
    above = node.agent
    while above is not None and above.kind != "agent":
        above = above.agent
    return above.name if above is not None else None


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
