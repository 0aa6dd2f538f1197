"""Reads the agent invocations of a trace: a `Trace` comes in, `Invocation`s in start order go out.

Each invocation is read from its `Group` of spans by the field rules below; every field is resolved
on its own over all dialects. Agents and model calls under a tool span are the work of sub-agents:
they count for the trajectory and the tokens, not for the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pathgauge.collector.core.invocations import scenario
from pathgauge.collector.core.invocations.dialects import BUILT_IN, Registry
from pathgauge.collector.core.invocations.dialects.field_paths import Place, first
from pathgauge.collector.core.invocations.errors import error_of, error_type
from pathgauge.collector.core.invocations.grouping import Group, groups
from pathgauge.collector.core.invocations.input_output import Dialogue, Step
from pathgauge.collector.core.invocations.messages.values import REDACTED_KEY, as_id, as_int
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.side_agents import asides
from pathgauge.collector.core.invocations.tool_calls import tool_calls
from pathgauge.collector.core.invocations.tool_schemas import tool_schemas
from pathgauge.collector.core.invocations.tree import Tree
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.scorers.types import AgentRun, Flag, Invocation, ModelCall, ToolCall, total_tokens


def read(
    trace: Trace,
    scenario_keys: tuple[str, ...] = scenario.DEFAULT_KEYS,
    registry: Registry = BUILT_IN,
) -> list[Invocation]:
    """All invocations of a trace; empty when no agent worked in it."""
    logs: dict[str | None, list[LogRecord]] = defaultdict(list)
    for log in sorted(trace.logs, key=lambda log: (log.time_ns, log.raw)):
        logs[log.span_id].append(log)
    return [
        _Reading(trace, group, logs, scenario_keys).invocation()
        for group in groups(Tree(trace, registry))
    ]


class _Reading:
    """One group of spans while it is being read."""

    def __init__(
        self,
        trace: Trace,
        group: Group,
        logs: Mapping[str | None, list[LogRecord]],
        scenario_keys: tuple[str, ...],
    ) -> None:
        self.trace = trace
        self.group = group
        self.logs = logs
        self.scenario_keys = scenario_keys
        self.flags: set[Flag] = set(group.flags)
        self.dialogue = Dialogue(group.nodes, logs, self.flags)
        self.steps = self.dialogue.steps
        self.tools = [
            node for node in group.nodes if node.kind in ("tool", "handoff") or node.called
        ]
        self.agents = [node for node in group.nodes if node.kind == "agent"]
        beside = asides(self.agents, self.steps, self.tools)
        self.top_steps = [
            step for step in self.steps if not group.inner(step.node) and step.run not in beside
        ] or self.steps
        self.top_agents = [
            node
            for node in self.agents
            if not group.inner(node) and node.span.span_id not in beside
        ]

    def invocation(self) -> Invocation:
        """Resolve every field."""
        spans, fields = self._own_spans(), self.group.entry.fields
        calls = tool_calls(self.steps, self.tools, self.dialogue.rounds, self._muted(), self.flags)
        user_input = self.dialogue.asked(self.group.entry_agent, self.top_steps)
        final_response = self.dialogue.answered(self._answering_agents(), self._answering_steps())
        agent = self._agent_name()
        found = scenario.find(
            self.group.entry, self.group.nodes, self._member_logs(), self.scenario_keys
        )
        if found.conflict:
            self.flags.add("scenario_conflict")
        turn, run_id = scenario.turn_and_run(found.scenario_id, spans, self.group.nodes)
        models = tuple(map(_model_call, self.steps))
        input_tokens, output_tokens = self._tokens(models)
        failed = self._failed_node() or self._unanswered_model_call(final_response)
        start_ns, end_ns = self.group.times()
        self._flag_gaps(calls, user_input, final_response, failed=failed is not None)
        return Invocation(
            trace_id=self.trace.trace_id,
            span_id=self.group.span_id,
            dialect=self._dialect(),
            tenant=self.trace.tenant,
            agent=agent,
            agent_version=as_id(first(spans, fields.agent_version))
            or as_id(spans[0].resource.attributes.get("service.version")),
            scenario_id=found.scenario_id,
            conversation_id=as_id(first(spans, fields.conversation_id)),
            user_id=as_id(first(spans, fields.user_id)),
            run_id=run_id,
            turn=turn,
            user_input=user_input,
            tool_calls=calls,
            sub_agents=tuple(self._sub_agents(agent, user_input, calls)),
            model_calls=models,
            final_response=final_response,
            error=failed is not None,
            error_type=error_type(failed) if failed else None,
            model=next(
                (model for call in reversed(self.top_steps) if (model := _model_of(call.node))),
                None,
            ),
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            tool_schemas=tool_schemas(self.agents, self.steps, self.tools, calls),
            start_ns=start_ns,
            end_ns=end_ns,
            flags=frozenset(self.flags),
        )

    def _own_spans(self) -> list[Span]:
        """The spans whose fields speak for the invocation: the anchor, what is not a sub-agent's,
        then what is above.
        """
        group = self.group
        own = (
            node
            for node in group.nodes
            if node.kind != "other" and node is not group.entry and not group.inner(node)
        )
        nodes = [group.entry, *own, *group.above()]
        return [span for node in nodes for span in node.spans]

    def _muted(self) -> frozenset[Place]:
        """The places at which an empty object means that content was not captured, judged by the
        model calls.
        """
        models = [step.node.span for step in self.steps]
        muting = {
            dialect.empty_means_not_captured
            for step in self.steps
            for dialect in step.node.dialects
            if dialect.empty_means_not_captured is not None
        }
        return frozenset(
            place
            for empty_means_not_captured in muting
            for place in empty_means_not_captured(models)
        )

    def _member_logs(self) -> list[LogRecord]:
        return [log for node in self.group.nodes for log in self.logs.get(node.span.span_id, ())]

    def _dialect(self) -> str:
        nodes = (self.group.entry, *self.group.nodes)
        return next((node.dialect.name for node in nodes if node.dialect is not None), "genai")

    def _agent_name(self) -> str | None:
        entry_agent = self.group.entry_agent
        if entry_agent is not None and entry_agent.kind == "agent":
            return entry_agent.name
        own = (
            node
            for node in self.group.nodes
            if node.kind in ("agent", "model", "tool") and not self.group.inner(node)
        )
        name = next(
            (
                name
                for node in own
                if (name := node.name if node.kind == "agent" else node.name_as_agent())
            ),
            None,
        )
        return name or (entry_agent.name if entry_agent else None)

    def _answering_agents(self) -> list[Node]:
        """The anchor, and the agent that was active last, as after a handoff it answers for the
        whole.
        """
        entry_agent = self.group.entry_agent
        nodes = [entry_agent] if entry_agent is not None else []
        return nodes + [node for node in self.top_agents[-1:] if node is not entry_agent]

    def _answering_steps(self) -> list[Step]:
        """The model calls that may have answered: none, when the agent that was active last began
        after all of them.
        """
        last = self.top_agents[-1].span if self.top_agents else None
        over = (
            last is not None
            and self.top_steps
            and self.top_steps[-1].node.span.end_ns <= last.start_ns
        )
        return [] if over else self.top_steps

    def _failed_node(self) -> Node | None:
        """What failed the turn: what answers for it, or the last model call where there is nobody."""
        nodes = self._answering_agents()[::-1] or [
            self.group.entry,
            *(step.node for step in self.top_steps[-1:]),
        ]
        return next((node for node in nodes if error_of(node) is not None), None)

    def _unanswered_model_call(self, final_response: str | None) -> Node | None:
        """The last model call, when it failed and nobody answered instead: some frameworks end
        their agent well all the same.
        """
        last = self.top_steps[-1].node if self.top_steps else None
        return (
            last
            if last is not None and final_response is None and error_of(last) is not None
            else None
        )

    def _calls_unknown(self, shown: set[int | None]) -> bool:
        """Whether calls may have been made that the telemetry shows nowhere; `shown` are the model
        calls whose calls it does show.
        """
        if not self.steps and not self.tools:
            return True
        if not shown and any(
            node.dialect is not None and not node.dialect.shows_tools for node in self.agents
        ):
            return True
        for number, step in enumerate(self.steps):
            if step.content.output or number in shown or error_of(step.node) is not None:
                continue
            reasons = first(step.node.spans, step.node.fields.finish_reasons)
            if "tool" in str(reasons).lower() or (reasons is None and not self.tools):
                return True
        return False

    def _tokens(self, models: Sequence[ModelCall]) -> tuple[int | None, int | None]:
        """Sums over model calls, since agent spans repeat them; the agents' own totals only where a
        model call that answered says none.
        """
        sums = total_tokens(models)
        if sums != (None, None):
            return sums
        agents = self.top_agents or self._answering_agents()
        return total_tokens([_stated_total(node) for node in agents])

    def _sub_agents(
        self, main: str | None, user_input: str | None, calls: Iterable[ToolCall]
    ) -> Iterable[AgentRun]:
        """All runs but those of the main agent, which may get control back; after a handoff an
        agent answers the user.
        """
        handed_over = any(call.kind == "handoff" for call in calls)
        first_run = next((node for node in self.top_agents if node.name == main), None)
        for node in self.agents:
            inner = self.group.inner(node)
            if node.name == main and not inner:
                continue
            steps = [step for step in self.steps if step.node.agent is node]
            above = node.agent_run() or first_run
            via: Literal["agent", "handoff"] = (
                "handoff" if handed_over and node in self.top_agents else "agent"
            )
            yield AgentRun(
                span_id=node.span.span_id,
                agent=node.name,
                parent=above.name if above else main,
                parent_run=above.span.span_id if above else None,
                via=via,
                user_input=user_input if via == "handoff" else self.dialogue.asked(node, steps),
                final_response=self.dialogue.answered([node], steps),
                error=(error := error_of(node)),
                error_type=error_type(node) if error is not None else None,
                start_ns=node.span.start_ns,
                end_ns=node.span.end_ns,
            )

    def _flag_gaps(
        self,
        calls: Sequence[ToolCall],
        user_input: str | None,
        final_response: str | None,
        *,
        failed: bool,
    ) -> None:
        """Say what the telemetry lacks."""
        silent = self.steps and user_input is None and final_response is None
        answering = self._answering_steps()[-1:]
        unheard = (
            final_response is None
            and not failed
            and self.top_steps
            and not any(step.content.output for step in answering)
        )
        if silent or unheard or any(call.arguments is None for call in calls):
            self.flags.add("content_missing")
        if self._calls_unknown({call.group for call in calls}):
            self.flags.add("no_tool_spans")
        if any(node.own_spans != node.spans for node in self.agents):
            self.flags.add("llm_detail_unreliable")
        if any(
            span.dropped_attributes
            for node in self.group.nodes
            if node.kind != "other"
            for span in node.spans
        ):
            self.flags.add("dropped_attributes")
        spans = (span for node in self.group.nodes if node.kind != "other" for span in node.spans)
        if any(REDACTED_KEY in span.attributes for span in spans) or any(
            REDACTED_KEY in log.attributes for log in self._member_logs()
        ):
            self.flags.add("redacted")
        if self.trace.truncated:
            self.flags.add("dropped_spans")
        if self.group.entry.span.end_ns < self.group.entry.span.start_ns:
            self.flags.add("clock_skew")


def _model_call(step: Step) -> ModelCall:
    node = step.node
    counts = (
        as_int(first(node.spans, node.fields.input_tokens)),
        as_int(first(node.spans, node.fields.output_tokens)),
    )
    input_tokens, output_tokens = (
        counts if any(counts) else (None, None)
    )  # zeros stand where nothing was counted
    return ModelCall(
        span_id=node.span.span_id,
        agent=node.worker(),
        run=step.run,
        model=_model_of(node),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        error=error_of(node),
        start_ns=node.span.start_ns,
        end_ns=node.span.end_ns,
    )


def _model_of(node: Node) -> str | None:
    return as_id(first(node.spans, node.fields.response_model)) or as_id(
        first(node.spans, node.fields.request_model)
    )


def _stated_total(node: Node) -> ModelCall:
    """The tokens that an agent's span states, as if it were one model call."""
    return ModelCall(
        span_id=node.span.span_id,
        input_tokens=as_int(first(node.own_spans, node.fields.total_input_tokens)),
        output_tokens=as_int(first(node.own_spans, node.fields.total_output_tokens)),
    )
