"""Reads the agent invocations of a trace, in start order.

Each invocation is read from its `Group` of spans. Every field is resolved separately over all
dialects of the trace. Agents and model calls below a tool span are the work of sub-agents: they
count for the trajectory and the tokens, but not for the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pathgauge.collector.core.invocations import scenario, session_end
from pathgauge.collector.core.invocations.defects import defects
from pathgauge.collector.core.invocations.dialects import Fields, Registry
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPath, first
from pathgauge.collector.core.invocations.errors import error_of, error_type
from pathgauge.collector.core.invocations.gaps import Gaps
from pathgauge.collector.core.invocations.grouping import Group, groups
from pathgauge.collector.core.invocations.input_output import Dialogue, Step
from pathgauge.collector.core.invocations.losses import Losses, Orphans, lacking_models
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.invocations.model_calls import (
    model_call,
    model_of,
    stated_total,
)
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.reading import Reading, shown_by
from pathgauge.collector.core.invocations.rounds import by_rounds, of_several_rounds
from pathgauge.collector.core.invocations.side_agents import side_agents
from pathgauge.collector.core.invocations.span_records import span_records
from pathgauge.collector.core.invocations.sub_agents import sub_agents
from pathgauge.collector.core.invocations.tool_calls import tool_calls
from pathgauge.collector.core.invocations.tool_schemas import tool_schemas
from pathgauge.collector.core.invocations.tree import Tree
from pathgauge.collector.core.invocations.unknown_framework import (
    is_not_understood,
    may_be_changed,
    without_template,
)
from pathgauge.collector.core.invocations.usage import own_usage
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.scorers.authoring.extras import NO_EXTRAS, Extras, SpanRecord
from pathgauge.scorers.types import Flag, Invocation, ModelCall, total_tokens


def read(
    trace: Trace,
    registry: Registry,
    scenario_keys: tuple[str, ...] = scenario.DEFAULT_KEYS,
    extras: Extras = NO_EXTRAS,
) -> list[Invocation]:
    """All invocations of a trace; empty if no agent worked in it. `extras`: what scorers read
    beside the usual parts.
    """
    return [one.invocation for one in readings(trace, registry, scenario_keys, extras)]


def readings(
    trace: Trace,
    registry: Registry,
    scenario_keys: tuple[str, ...] = scenario.DEFAULT_KEYS,
    extras: Extras = NO_EXTRAS,
    unread: Callable[[Span], None] | None = None,
) -> list[Reading]:
    """As `read`, with what other invocations of the same agents may settle. `unread` gets the spans
    that speak of agents and that no dialect understands.
    """
    if not any(map(registry.may_matter, trace.spans)):
        return []
    logs: dict[str | None, list[LogRecord]] = defaultdict(list)
    for log in sorted(trace.logs, key=lambda log: (log.time_ns, log.raw)):
        logs[log.span_id].append(log)
    found = groups(Tree(trace, registry, unread))
    orphans = Orphans(trace.spans, found)
    return [
        _Reader(trace, group, logs, scenario_keys, extras, orphans=orphans).reading()
        for group in found
    ]


class _Reader:
    """Reads one group of spans."""

    def __init__(
        self,
        trace: Trace,
        group: Group,
        logs: Mapping[str | None, list[LogRecord]],
        scenario_keys: tuple[str, ...],
        extras: Extras,
        *,
        orphans: Orphans,
    ) -> None:
        self.trace = trace
        self.group = group
        self.logs = logs
        self.scenario_keys = scenario_keys
        self.extras = extras
        self.flags: set[Flag] = set(group.flags)
        if orphans.concern(group):
            self.flags.add("lost_parents")
        self.dialogue = Dialogue(group.nodes, logs, self.flags)
        self.steps = self.dialogue.steps
        self.tools = list(filter(_is_tool, group.nodes))
        self.several = of_several_rounds(self.steps, self.tools)
        self.agents = [node for node in group.nodes if node.kind == "agent"]
        aside = side_agents(self.agents, self.steps, self.tools)
        self.top_steps = [
            step
            for step in self.steps
            if not group.by_sub_agent(step.node) and step.run not in aside
        ] or self.steps
        self.top_agents = [
            node
            for node in self.agents
            if not group.by_sub_agent(node) and node.span.span_id not in aside
        ]

    def reading(self) -> Reading:
        """Resolve every field."""
        spans, fields = self._own_spans(), self.group.entry.plan.fields
        empty_means_not_captured = self._empty_means_not_captured()
        calls = tool_calls(
            self.steps, self.tools, self.dialogue.rounds, empty_means_not_captured, self.flags
        )
        user_input = self.dialogue.asked(self.group.entry_agent, self.top_steps, self.top_agents)
        gaps = self._gaps()
        final_response = self.dialogue.answered(gaps.answering_agents, gaps.answering_steps)
        agent = self._agent_name()
        if is_not_understood(self.group) or may_be_changed(self.group, calls):
            self.flags.add("unknown_dialect")
            user_input = without_template(user_input)
        elif final_response is None and gaps.outputs_recorded():
            final_response = "" if gaps.answer_left_out(self.flags) else None
        logs = self._member_logs()
        found = scenario.find(self.group.entry, self.group.nodes, logs, self.scenario_keys)
        if found.conflict:
            self.flags.add("scenario_conflict")
        turn, run_id = scenario.turn_and_run(found.scenario_id, spans, self.group.nodes)
        ended = session_end.find(self.group.entry, self.group.nodes, logs)
        stated = [self._model_call(*one) for one in enumerate(self.steps)]
        usage = own_usage(stated, self.steps, self.tools, self.flags)
        input_tokens, output_tokens = self._tokens(usage.to_sum)
        failed = self._failed_node() or self._unanswered_model_call(final_response)
        start_ns, end_ns = self.group.times()
        doubts = gaps.flag(self.flags, calls, user_input, final_response, failed=failed is not None)
        self.flags.update(defects(self.group, self.agents, logs))
        if self.trace.truncated:
            self.flags.add("dropped_spans")
        answer = final_response if failed is None else None
        losses = Losses(
            self.dialogue, self.agents, self.top_steps, calls, usage.models, self.flags, answer
        )
        # Prompts are read for this that nothing else needs: it does not matter if these are
        # truncated.
        flags = frozenset(self.flags)
        flags = flags.union(losses.flags())
        invocation = Invocation(
            trace_id=self.trace.trace_id,
            span_id=self.group.span_id,
            dialect=self._dialect(),
            tenant=self.trace.tenant,
            agent=agent,
            agent_version=_agent_version(spans, fields),
            scenario_id=found.scenario_id,
            conversation_id=as_id(first(spans, fields.conversation_id)),
            user_id=as_id(first(spans, fields.user_id)),
            run_id=run_id,
            turn=turn,
            user_input=user_input,
            tool_calls=by_rounds(calls, self.several, len(self.steps)),
            sub_agents=tuple(
                sub_agents(
                    self.group,
                    self.agents,
                    self.top_agents,
                    self.dialogue,
                    main=agent,
                    user_input=user_input,
                    calls=calls,
                )
            ),
            model_calls=usage.models,
            final_response=final_response,
            error=failed is not None,
            error_type=error_type(failed) if failed else None,
            model=self._model(),
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            tool_schemas=tool_schemas(self.agents, self.steps, self.tools, calls),
            start_ns=start_ns,
            end_ns=end_ns,
            session_end=ended,
            flags=flags,
            spans=self._spans(),
        )
        tool_spans = any(node.kind == "tool" or node.called for node in self.tools)
        lacks = lacking_models(invocation, self.tools)
        return Reading(
            invocation,
            shown_by(invocation, tool_spans=tool_spans),
            doubts,
            lacks,
        )

    def _model_call(self, number: int, step: Step) -> ModelCall:
        call = model_call(step, with_text=self.extras.model_texts)
        if number in self.several:
            self.flags.add("llm_detail_unreliable")
            return replace(call, input_tokens=None, output_tokens=None)
        return call

    def _gaps(self) -> Gaps:
        agents, steps = self._answering_agents(), self._answering_steps()
        return Gaps(self.dialogue, self.tools, self.agents, agents, steps)

    def _spans(self) -> tuple[SpanRecord, ...]:
        keys = self.extras.span_attributes
        return () if keys is None else span_records(self.group.nodes, keys)

    def _own_spans(self) -> list[Span]:
        """The spans whose fields describe the invocation: the entry span, what is not the work of a
        sub-agent, then the spans above.
        """
        group = self.group
        own = (
            node
            for node in group.nodes
            if node.kind != "other" and node is not group.entry and not group.by_sub_agent(node)
        )
        nodes = [group.entry, *own, *group.above()]
        return [span for node in nodes for span in node.spans]

    def _empty_means_not_captured(self) -> frozenset[FieldPath]:
        """The field paths at which `{}` means that content was not captured, judged by the model
        calls.
        """
        hooks = {
            dialect.empty_means_not_captured
            for step in self.steps
            for dialect in step.node.dialects
            if dialect.empty_means_not_captured is not None
        }
        models = [step.node.span for step in self.steps]
        return frozenset(path for hook in hooks for path in hook(models))

    def _member_logs(self) -> list[LogRecord]:
        return [log for node in self.group.nodes for log in self.logs.get(node.span.span_id, ())]

    def _dialect(self) -> str:
        nodes = [one for one in (self.group.entry, *self.group.nodes) if one.dialect is not None]
        known = [one for one in nodes if not (one.is_unknown and one.kind == "other")]
        return next((one.dialect.name for one in known or nodes if one.dialect), "genai")

    def _agent_name(self) -> str | None:
        entry_agent = self.group.entry_agent
        if entry_agent is not None and entry_agent.kind == "agent":
            return entry_agent.name
        for node in self.group.nodes:
            if node.kind not in ("agent", "model", "tool") or self.group.by_sub_agent(node):
                continue
            name = node.name if node.kind == "agent" else node.name_as_agent()
            if name:
                return name
            if node.kind == "agent" and node.is_unknown:
                return None  # the next one that has a name may be a sub-agent
        if entry_agent:
            return entry_agent.name
        return None

    def _model(self) -> str | None:
        """The model that was called last."""
        models = (model_of(step.node) for step in reversed(self.top_steps))
        return next((model for model in models if model), None)

    def _answering_agents(self) -> list[Node]:
        """The entry agent, and the agent that was active last: after a handoff it answers."""
        entry_agent = self.group.entry_agent
        nodes = [entry_agent] if entry_agent is not None else []
        return nodes + [node for node in self.top_agents[-1:] if node is not entry_agent]

    def _answering_steps(self) -> list[Step]:
        """The model calls that may have answered: none if the agent that was active last started
        after all of them.
        """
        if self.top_agents and self.top_steps:
            last_agent, last_step = self.top_agents[-1].span, self.top_steps[-1].node.span
            if last_step.end_ns <= last_agent.start_ns:
                return []
        return self.top_steps

    def _failed_node(self) -> Node | None:
        """The node that failed the turn: an answering agent, or without one the entry or the last
        model call.
        """
        nodes = self._answering_agents()[::-1]
        if not nodes:
            nodes = [self.group.entry, *(step.node for step in self.top_steps[-1:])]
        return next((node for node in nodes if self._has_failed(node)), None)

    def _has_failed(self, node: Node) -> bool:
        """Whether a node failed. Some workflows have the first error in their trace, although the
        agent went on after it.
        """
        error = error_of(node)
        if error is None or node.kind != "workflow":
            return error is not None
        below = [*self.tools, *(step.node for step in self.steps)]
        return not any(
            one.agent not in (node, None) and error_of(one.agent) is None
            for one in below
            if error_of(one) == error
        )

    def _unanswered_model_call(self, final_response: str | None) -> Node | None:
        """The last model call, if it failed and there is no answer. Some frameworks report success
        for the agent in that case.
        """
        if final_response is not None or not self.top_steps:
            return None
        last = self.top_steps[-1].node
        if error_of(last) is not None:
            return last
        return None

    def _tokens(self, models: Sequence[ModelCall]) -> tuple[int | None, int | None]:
        """Sums over model calls, because agent spans repeat them. The totals of the agents are used
        only if no model call has token counts.
        """
        sums = total_tokens(models)
        if sums != (None, None):
            return sums
        agents = self.top_agents or self._answering_agents()
        counted = set(map(id, agents))
        left_out = [
            node
            for node in self.agents
            if id(node) not in counted
            and any(dialect.totals_leave_out_agents for dialect in node.dialects)
        ]
        return total_tokens([stated_total(node) for node in (*agents, *left_out)])


def _is_tool(node: Node) -> bool:
    return node.kind in ("tool", "handoff") or node.called


def _agent_version(spans: Sequence[Span], fields: Fields) -> str | None:
    stated = as_id(first(spans, fields.agent_version))
    return stated or as_id(spans[0].resource.attributes.get("service.version"))
