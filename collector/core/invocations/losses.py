"""Finds signs that spans of an invocation were lost on their way.

Half of a trajectory would look like a worse one, so an invocation with such a sign has no score for
its tool calls. What an instrumentation never writes and content that is switched off are no signs:

- `lost_parents`: the parent of a span never arrived, although it is of the same process. For the
  outermost span alone this proves nothing: many senders leave out the spans of their web server.
- `lost_tool_calls`: a later prompt holds tool calls that are not recorded; or a call succeeded
  without a span, although other calls of that tool have one; or an agent went on after a call that
  has neither a span nor a result; or the SDK dropped the attributes of a model call that would hold
  them.
- `lost_model_calls`: an agent states more tokens than its model calls; or it answered after tool
  calls whose results no model call has seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pathgauge.collector.core.invocations.call_kinds import call_kind
from pathgauge.collector.core.invocations.dialect_hooks import function_naming
from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.errors import error_of
from pathgauge.collector.core.invocations.gaps import UNREADABLE, hides_tools
from pathgauge.collector.core.invocations.grouping import Group
from pathgauge.collector.core.invocations.input_output import Dialogue, Step
from pathgauge.collector.core.invocations.messages.message import (
    Message,
    asked_calls,
    is_of_user,
    said,
)
from pathgauge.collector.core.invocations.messages.values import as_text
from pathgauge.collector.core.invocations.model_calls import stated_total
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.reading import Record
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.scorers.types import Flag, Invocation, ModelCall, ToolCall

_BY_FRAMEWORK = "transfer_"
"""Frameworks add such calls to the history themselves, without any span or model call."""


class Orphans:
    """The spans of a trace whose parent, of the same process, never arrived."""

    def __init__(self, spans: Collection[Span], groups: Iterable[Group]) -> None:
        """`groups` are all those of the trace."""
        known = {span.span_id for span in spans}
        orphans = [span for span in spans if span.is_orphan(known)]
        self._ids = {span.span_id for span in orphans}
        self._parents = {span.parent_id for span in orphans}
        self._has_root = any(span.parent_id is None for span in spans)
        grouped = {node.span.span_id for group in groups for node in group.nodes} if orphans else ()
        self._elsewhere = [span for span in orphans if span.span_id not in grouped]

    def concern(self, group: Group) -> bool:
        """Whether an orphan is part of the group, or may be one because it ran during the group, or
        whether the group itself was cut off from a larger one.
        """
        if not self._ids or "missing_root" in group.flags:
            return False
        top = [group.entry, *group.above()][-1].span
        if any(node.span.span_id in self._ids and node.span is not top for node in group.nodes):
            return True
        if top.span_id in self._ids and (self._has_root or len(self._parents) > 1):
            return True
        entry = group.entry.span
        return any(
            span is not top and entry.start_ns <= span.start_ns and span.end_ns <= entry.end_ns
            for span in self._elsewhere
        )


@dataclass(frozen=True, slots=True)
class Losses:
    """Finds what one invocation has lost, except parents."""

    dialogue: Dialogue
    agents: Sequence[Node]
    top_steps: Sequence[Step]
    """The model calls of the agents that may answer the user."""
    calls: Sequence[ToolCall]
    models: Sequence[ModelCall]
    read_flags: Collection[Flag]
    """Those that were found so far."""
    answer: str | None
    """Of an invocation that did not fail."""

    def flags(self) -> Iterator[Flag]:
        """The signs that were found."""
        if (
            self._prompts_hold_other_calls()
            or self._calls_lack_spans()
            or self._went_on_without_results()
            or self._dropped_attributes_held_calls()
        ):
            yield "lost_tool_calls"
        if self._agents_state_more_tokens() or self._answered_after_unseen_results():
            yield "lost_model_calls"

    def _prompts_hold_other_calls(self) -> bool:
        """Whether the last prompt of an agent run holds more calls of this turn than are recorded.
        It repeats what the earlier ones held.
        """
        opening: dict[str | None, Step] = {}
        last: dict[str | None, Step] = {}
        for step in self.dialogue.steps:
            opening.setdefault(step.run, step)
            last[step.run] = step
        recorded = [call.name for call in self.calls]
        for run, step in last.items():
            held = _asked_since_user(step, step.content.turn)
            if held and _has_more(held, [*recorded, *self._asked_before(opening[run])]):
                return True
        return False

    def _asked_before(self, first: Step) -> list[str]:
        """The calls of an earlier invocation that this one resumes, by the messages that the agent
        was given. If these are not recorded, they may be all those in its first prompt.
        """
        agent = first.node.agent
        given = self.dialogue.input_of(agent) if agent is not None else ()
        told = any(message.text or message.calls or message.responses for message in given)
        return _asked_since_user(first, given if told else first.content.turn)

    def _calls_lack_spans(self) -> bool:
        """Calls that were rejected or failed at once have no span, nor those that the provider of
        the model carries out.
        """
        with_span = {call.name for call in self.calls if call.start_ns is not None}
        return any(
            call.name in with_span and call.result is not None and call.error is None
            for call in self.calls
            if call.start_ns is None and call.kind == "function"
        )

    def _went_on_without_results(self) -> bool:
        """Whether a call left nothing behind, although its agent called the model again. At the end
        of a run, such calls are left to the client or wait for approval.
        """
        if not self._calls_leave_traces():
            return False
        last = {step.run: number for number, step in enumerate(self.dialogue.steps)}
        return any(
            call.group is not None
            and call.group < last[self.dialogue.steps[call.group].run]
            and call.kind == "function"
            and call.start_ns is None
            and call.result is None
            and call.error is None
            for call in self.calls
        )

    def _calls_leave_traces(self) -> bool:
        """Whether a call that is carried out is recorded, and what is recorded can be read."""
        if any(map(hides_tools, self.agents)):
            return False
        return UNREADABLE.isdisjoint(self.read_flags)

    def _dropped_attributes_held_calls(self) -> bool:
        """Whether the SDK dropped attributes of a model call whose output is not recorded, and no
        span of a tool shows what it asked for.
        """
        if any(call.start_ns is not None for call in self.calls):
            return False
        with_calls = {call.group for call in self.calls}
        return any(
            any(span.dropped_attributes for span in step.node.spans)
            for number, step in enumerate(self.dialogue.steps)
            if number not in with_calls and _ended_unseen(step)
        )

    def _agents_state_more_tokens(self) -> bool:
        """Only outputs are compared: what counts as input differs, because of caches."""
        if any(not model.output_tokens and model.error is None for model in self.models):
            return False
        counted = sum(model.output_tokens or 0 for model in self.models)
        agents = [agent for agent in self.agents if not _states_sum_of_runs(agent)]
        stated = (stated_total(agent).output_tokens for agent in agents)
        return any(count is not None and count > counted for count in stated)

    def _answered_after_unseen_results(self) -> bool:
        """Whether the last model call asked for tools, and there is an answer that is none of
        their arguments or results.
        """
        if not self.answer or not self.top_steps:
            return False
        last = self.top_steps[-1]
        asked = list(asked_calls(last.content.output))
        if not asked or any(call_kind(one.name, None, last.node) != "function" for one in asked):
            return False
        number = self.dialogue.steps.index(last)
        calls = [call for call in self.calls if call.group == number]
        if any(call.result is None for call in calls) and not self._calls_leave_traces():
            return False
        spoken = said(last.content.output)
        return not any(_may_answer(call, self.answer, spoken) for call in calls)


def _states_sum_of_runs(agent: Node) -> bool:
    """Whether the tokens of an agent span include those of its earlier runs."""
    return any(dialect.name == "strands" for dialect in agent.dialects)


def _ended_unseen(step: Step) -> bool:
    """Whether neither the output of a model call is recorded, nor why it ended."""
    node = step.node
    stated = first(node.spans, node.fields.finish_reasons)
    return not step.content.output and stated is None and error_of(node) is None


def _may_answer(call: ToolCall, answer: str, spoken: str) -> bool:
    """Whether a call holds the answer, or was not carried out: then the answer was `spoken` beside
    it, or tells that it waits.
    """
    if call.result is None and (answer in spoken or call.name in answer):
        return True
    texts = filter(None, (as_text(call.result), as_text(call.arguments)))
    return any(text in answer or answer in text for text in texts)


def lacking_models(
    invocation: Invocation, tools: Sequence[Node]
) -> Mapping[Record, frozenset[Flag]]:
    """The flags of an invocation without model calls, if its agent is known to record them. Who
    called its tools was lost. Without tools, it may have answered from a cache.
    """
    if invocation.model_calls or (invocation.error and not tools):
        return {}
    return {"models": frozenset({"lost_model_calls"} if tools else {"no_tool_spans"})}


def _asked_since_user(step: Step, messages: Sequence[Message]) -> list[str]:
    """The names of the tool calls in a prompt after the last message of the user."""
    rename = function_naming(step.node)
    names: list[str] = []
    for message in reversed(messages):
        if is_of_user(message):
            break
        if message.calls and message.role == "assistant":
            names += [call.name if rename is None else rename(call.name) for call in message.calls]
    return [name for name in names if not name.startswith(_BY_FRAMEWORK)]


def _has_more(names: Iterable[str], known: Iterable[str]) -> bool:
    """Whether any name is there more often than in `known`."""
    left: dict[str, int] = {}
    for name in known:
        left[name] = left.get(name, 0) + 1
    for name in names:
        left[name] = left.get(name, 0) - 1
        if left[name] < 0:
            return True
    return False
