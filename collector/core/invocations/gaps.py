"""Whether the telemetry of an invocation lacks content or tool calls.

A lack is certain, such as a finish reason `tool_calls` without a recorded call, or in doubt: see
`pathgauge.collector.core.invocations.reading`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.errors import error_of
from pathgauge.collector.core.invocations.input_output import Dialogue, Step
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.values import REDACTED_KEY
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.reading import Doubts, Record
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.scorers.types import Flag, ToolCall

UNREADABLE: frozenset[Flag] = frozenset({"truncated", "redacted"})
"""The flags of content that was recorded and cannot be read any more."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Finds what one invocation lacks."""

    dialogue: Dialogue
    tools: Sequence[Node]
    """The spans of tool calls and handoffs."""
    agents: Sequence[Node]
    answering_agents: Sequence[Node]
    answering_steps: Sequence[Step]
    """The model calls that may have answered."""

    def answer_left_out(self, flags: Collection[Flag]) -> bool:
        """Whether the last model call ended normally and recorded its prompt, but no answer. Some
        instrumentations leave an empty answer out.
        """
        if not self.answering_steps or not UNREADABLE.isdisjoint(flags):
            return False
        step = self.answering_steps[-1]
        output = step.content.output
        reasons = _finish_reasons(step) or _finish_reason(output)
        if reasons is None or "tool" in reasons or "error" in reasons:
            return False
        if error_of(step.node) is not None or any(map(_has_removed_attributes, step.node.spans)):
            return False
        is_absent = not any(message.is_recorded or message.hidden for message in output)
        return is_absent and any(message.is_recorded for message in step.content.input)

    def outputs_recorded(self) -> bool:
        """Whether the output of any model call is recorded."""
        outputs = (step.content.output for step in self.dialogue.steps)
        return any(message.is_recorded for output in outputs for message in output)

    def flag(
        self,
        flags: set[Flag],
        calls: Collection[ToolCall],
        user_input: str | None,
        final_response: str | None,
        *,
        failed: bool,
    ) -> Doubts:
        """Add `content_missing` and `no_tool_spans` to `flags`. Returns what is in doubt."""
        doubts: dict[Record, frozenset[Flag]] = {}
        content = self._content_missing(calls, user_input, final_response, failed=failed)
        if final_response is None and self.answer_left_out(flags):
            only_answer = content and not self._content_missing(
                calls, user_input, "", failed=failed
            )
            doubts["responses"] = frozenset({"content_missing"} if only_answer else ())
        if content:
            flags.add("content_missing")
        with_calls = {call.group for call in calls}
        if self._calls_lost(with_calls):
            flags.add("no_tool_spans")
        elif self._calls_unknown(with_calls):
            flags.add("no_tool_spans")
            doubts["tools"] = frozenset({"no_tool_spans"})
        return Doubts(doubts)

    def _content_missing(
        self,
        calls: Iterable[ToolCall],
        user_input: str | None,
        final_response: str | None,
        *,
        failed: bool,
    ) -> bool:
        """Whether input, output or arguments are not recorded."""
        if any(call.arguments is None for call in calls):
            return True
        if user_input is None and self._prompt_missing():
            return True
        if final_response is not None:
            return False
        if self.dialogue.steps and user_input is None:
            return True
        outputs = (step.content.output for step in self.answering_steps[-1:])
        has_output = any(one.is_recorded or not one.hidden for output in outputs for one in output)
        return not failed and bool(self.dialogue.steps) and not has_output

    def _prompt_missing(self) -> bool:
        """Whether no model call has its prompt. A recorded prompt without a user has none."""
        steps = self.dialogue.steps
        prompts = (step.content.input for step in steps)
        return bool(steps) and not any(one.is_recorded for prompt in prompts for one in prompt)

    def _calls_lost(self, with_calls: set[int | None]) -> bool:
        """Whether tools were called that are not recorded. `with_calls` are the numbers of the
        model calls whose tool calls are recorded.
        """
        if not with_calls and (self.dialogue.rounds or any(map(hides_tools, self.agents))):
            return self._calls_unknown(with_calls)
        steps = self._silent(with_calls) if with_calls or self.tools else self._succeeded()
        return any("tool" in (_finish_reasons(step) or "") for step in steps)

    def _calls_unknown(self, with_calls: set[int | None]) -> bool:
        """Whether tools may have been called without any record."""
        if not self.dialogue.steps and not self.tools:
            return True
        if not with_calls and any(map(hides_tools, self.agents)):
            return True
        if self.tools or self._answered_at_once():
            return False
        return any(_finish_reasons(step) is None for step in self._silent(with_calls))

    def _silent(self, with_calls: set[int | None]) -> Iterable[Step]:
        """The model calls whose output is not recorded, without failed ones."""
        for number, step in enumerate(self.dialogue.steps):
            is_known = number in with_calls or step.content.output
            if not is_known and error_of(step.node) is None:
                yield step

    def _succeeded(self) -> Iterable[Step]:
        """The model calls that did not fail."""
        return (step for step in self.dialogue.steps if error_of(step.node) is None)

    def _answered_at_once(self) -> bool:
        """Whether the only model call gave the answer, so that it asked for no tools."""
        if len(self.dialogue.steps) != 1:
            return False
        return self.dialogue.ended_with_answer(self.answering_agents)


def hides_tools(node: Node) -> bool:
    """Whether the instrumentation of an agent records no tool calls at all."""
    return node.dialect is not None and not node.dialect.shows_tools


def _has_removed_attributes(span: Span) -> bool:
    return bool(span.dropped_attributes) or REDACTED_KEY in span.attributes


def _finish_reason(output: Iterable[Message]) -> str | None:
    """The reason that a message of the output states, in lower case."""
    stated = (message.finish_reason for message in output)
    return next((reason.lower() for reason in stated if reason), None)


def _finish_reasons(step: Step) -> str | None:
    """The reasons in lower case; `None` if they are not recorded."""
    reasons = first(step.node.spans, step.node.fields.finish_reasons)
    return None if reasons is None else str(reasons).lower()
