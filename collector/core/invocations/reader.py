"""Reads the agent invocations of a trace, in start order.

Each invocation is read from its `Group` of spans. Every field is resolved separately over all
dialects of the trace. What sub-agents do counts for the trajectory and the tokens, but not for the
answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pathgauge.collector.core.invocations import scenario, session_end
from pathgauge.collector.core.invocations.defects import defects
from pathgauge.collector.core.invocations.dialects import Fields, Registry
from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.errors import error_type
from pathgauge.collector.core.invocations.gaps import Gaps
from pathgauge.collector.core.invocations.grouping import Group, groups
from pathgauge.collector.core.invocations.input_output import Dialogue, Step
from pathgauge.collector.core.invocations.losses import Losses, Orphans, lacking_models
from pathgauge.collector.core.invocations.members import Members
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.invocations.model_calls import (
    model_call,
    model_of,
    stated_total,
)
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.reading import Reading, shown_by
from pathgauge.collector.core.invocations.rebuilt import original_flags
from pathgauge.collector.core.invocations.rounds import by_rounds, of_several_rounds
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
from pathgauge.collector.core.invocations.usage import Usage, own_usage
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.scorers.authoring.extras import NO_EXTRAS, Extras, SpanRecord
from pathgauge.scorers.types import Flag, Invocation, ModelCall, ToolCall, total_tokens


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
        self.logs = [log for node in group.nodes for log in logs.get(node.span.span_id, ())]
        self.scenario_keys = scenario_keys
        self.extras = extras
        self.flags: set[Flag] = set(group.flags)
        if orphans.concern(group):
            self.flags.add("lost_parents")
        self.dialogue = Dialogue(group.nodes, logs, self.flags)
        self.members = Members(group, self.dialogue.steps)
        self.several = of_several_rounds(self.members.steps, self.members.tools)
        self.gaps = Gaps(
            self.dialogue,
            self.members.tools,
            self.members.agents,
            self.members.answering_agents(),
            self.members.answering_steps(),
        )

    def reading(self) -> Reading:
        """Resolve every field."""
        members, flags = self.members, self.flags
        calls = tool_calls(members.steps, members.tools, self.dialogue.rounds, flags)
        user_input, final_response = self._conversation(calls)
        usage = self._usage()
        failed = members.failed_node(final_response)
        doubts = self.gaps.flag(flags, calls, user_input, final_response, failed=failed is not None)
        flags.update(defects(self.group, members.agents, self.logs))
        if self.trace.truncated:
            flags.add("dropped_spans")
        invocation = self._invocation(calls, user_input, final_response, usage, failed)
        tool_spans = any(node.kind == "tool" or node.called for node in members.tools)
        shown = shown_by(invocation, tool_spans=tool_spans)
        original = original_flags(self.group.entry.span, invocation.flags)
        if original is not None:
            return Reading(replace(invocation, flags=original), shown)
        return Reading(invocation, shown, doubts, lacking_models(invocation, members.tools))

    def _conversation(self, calls: Sequence[ToolCall]) -> tuple[str | None, str | None]:
        """What the user asked, and the answer."""
        dialogue, members, gaps = self.dialogue, self.members, self.gaps
        asked = dialogue.asked(self.group.entry_agent, members.top_steps, members.top_agents)
        answered = dialogue.answered(gaps.answering_agents, gaps.answering_steps)
        if is_not_understood(self.group) or may_be_changed(self.group, calls):
            self.flags.add("unknown_dialect")
            return without_template(asked), answered
        if answered is None and gaps.outputs_recorded() and gaps.answer_left_out(self.flags):
            return asked, ""
        return asked, answered

    def _usage(self) -> Usage:
        members = self.members
        stated = [self._model_call(*one) for one in enumerate(members.steps)]
        return own_usage(stated, members.steps, members.tools, self.flags)

    def _invocation(
        self,
        calls: Sequence[ToolCall],
        user_input: str | None,
        final_response: str | None,
        usage: Usage,
        failed: Node | None,
    ) -> Invocation:
        group, members = self.group, self.members
        spans, fields = members.own_spans(), group.entry.plan.fields
        found = scenario.find(group.entry, group.nodes, self.logs, self.scenario_keys)
        if found.conflict:
            self.flags.add("scenario_conflict")
        turn, run_id = scenario.turn_and_run(found.scenario_id, spans, group.nodes)
        input_tokens, output_tokens = self._tokens(usage.to_sum)
        start_ns, end_ns = group.times()
        agent = members.agent_name()
        flags = self._all_flags(calls, usage, final_response if failed is None else None)
        return Invocation(
            trace_id=self.trace.trace_id,
            span_id=group.span_id,
            dialect=members.dialect_name(),
            tenant=self.trace.tenant,
            agent=agent,
            agent_version=_agent_version(spans, fields),
            scenario_id=found.scenario_id,
            conversation_id=as_id(first(spans, fields.conversation_id)),
            user_id=as_id(first(spans, fields.user_id)),
            run_id=run_id,
            turn=turn,
            user_input=user_input,
            tool_calls=by_rounds(calls, self.several, len(members.steps)),
            sub_agents=tuple(
                sub_agents(
                    group,
                    members.agents,
                    members.top_agents,
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
            tool_schemas=tool_schemas(members.agents, members.steps, members.tools, calls),
            start_ns=start_ns,
            end_ns=end_ns,
            session_end=session_end.find(group.entry, group.nodes, self.logs),
            flags=flags,
            spans=self._spans(),
        )

    def _all_flags(
        self, calls: Sequence[ToolCall], usage: Usage, answer: str | None
    ) -> frozenset[Flag]:
        """The flags, with those of what was lost. `answer`: of an invocation that did not fail."""
        losses = Losses(
            self.dialogue,
            self.members.agents,
            self.members.top_steps,
            calls,
            usage.models,
            self.flags,
            answer,
        )
        # Prompts are read for this that nothing else needs: it does not matter if these are
        # truncated.
        return frozenset(self.flags).union(losses.flags())

    def _model_call(self, number: int, step: Step) -> ModelCall:
        call = model_call(step, with_text=self.extras.model_texts)
        if number in self.several:
            self.flags.add("llm_detail_unreliable")
            return replace(call, input_tokens=None, output_tokens=None)
        return call

    def _spans(self) -> tuple[SpanRecord, ...]:
        keys = self.extras.span_attributes
        return () if keys is None else span_records(self.group.nodes, keys)

    def _model(self) -> str | None:
        """The model that was called last."""
        models = (model_of(step.node) for step in reversed(self.members.top_steps))
        return next((model for model in models if model), None)

    def _tokens(self, models: Sequence[ModelCall]) -> tuple[int | None, int | None]:
        """Sums over model calls, because agent spans repeat them. The totals of the agents are used
        only if no model call has token counts.
        """
        sums = total_tokens(models)
        if sums != (None, None):
            return sums
        agents = self.members.top_agents or self.members.answering_agents()
        counted = set(map(id, agents))
        left_out = [
            node
            for node in self.members.agents
            if id(node) not in counted
            and any(dialect.totals_leave_out_agents for dialect in node.dialects)
        ]
        return total_tokens([stated_total(node) for node in (*agents, *left_out)])


def _agent_version(spans: Sequence[Span], fields: Fields) -> str | None:
    stated = as_id(first(spans, fields.agent_version))
    return stated or as_id(spans[0].resource.attributes.get("service.version"))
