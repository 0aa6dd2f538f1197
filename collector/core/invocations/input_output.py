"""What an agent was asked and what it answered.

Both may be on the span of the agent, in an attribute of its own or in messages. Otherwise the model
calls of the agent have them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import Any, NamedTuple

from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, first_or_empty
from pathgauge.collector.core.invocations.errors import error_of
from pathgauge.collector.core.invocations.messages.message import (
    Message,
    answer,
    is_of_user,
    last_answer,
    last_user_text,
)
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id, as_text, decode
from pathgauge.collector.core.invocations.model_messages import ModelContent
from pathgauge.collector.core.invocations.node import MAX_ANCESTORS, Node
from pathgauge.collector.core.otlp.spans import LogRecord
from pathgauge.scorers.types import Flag

_USER_TEXT_KEYS = frozenset(
    {"question", "query", "prompt", "request", "text", "task"}
    | {"user_input", "user_query", "user_message", "user_question", "user_prompt", "user_request"}
)
"""Names that programs give to the text of a user."""


class Step(NamedTuple):
    """One model call of an invocation with its messages."""

    node: Node
    content: ModelContent
    run: str | None
    """The span id of the agent that made the call; `None` outside of any agent."""


class Dialogue:
    """The messages of one invocation."""

    def __init__(
        self, nodes: Sequence[Node], logs: Mapping[str | None, list[LogRecord]], flags: set[Flag]
    ) -> None:
        """`logs`: the log records of the trace by span id, in time order. Adds to `flags` if
        content was truncated or removed.
        """
        self._logs = logs
        self._flags = flags
        models = [node for node in nodes if node.kind == "model"]
        self._models_below = Counter(id(node.parent) for node in models)
        self.steps = list(map(self._step, models))
        _link(self.steps)
        self.rounds = [self._step(node) for node in nodes if node.kind == "tools"]
        """The spans that execute several tool calls, with the results as their output."""

    def asked(
        self, agent: Node | None, steps: Sequence[Step], inner: Sequence[Node] = ()
    ) -> str | None:
        """The text of the user or the calling agent: as stated by the agent, or by the outermost of
        the agents between it and its first model call, or in the prompt of that. `steps`: the
        agent's own model calls. `inner`: the agents that work for it, of which the first speaks if
        nothing else does.
        """
        for node in _down_to_first(agent, steps):
            shown = self.input_of(node)
            text = last_user_text(shown) or self._asked_in_step(node)
            if text and not (_ends_before_turn(shown, steps) or _is_of_turn_before(text, steps)):
                return text
        if steps:
            return last_user_text(steps[0].content.turn)
        return self.asked(inner[0], ()) if inner else None

    def answered(self, agents: Sequence[Node], steps: Sequence[Step]) -> str | None:
        """The answer that one of the answering `agents` states or returns, otherwise the answer of
        the last model call. `None` if none is recorded.

        `""` if the first agent returns an empty one, or all others that are recorded are empty: an
        inner agent or model may have said what the first agent did not pass on.
        """
        stated = [
            as_text(first_or_empty(node.own_spans, node.fields.final_response)) for node in agents
        ]
        is_first_empty = stated[:1] == [""]
        text = None if is_first_empty else next(filter(None, stated), None)
        if text is not None:
            return text
        if steps and error_of(steps[-1].node) is not None:
            return None
        is_empty = "" in stated
        if is_first_empty:
            return ""
        for text, decides in self._answers(agents, steps):
            if text or (text is not None and decides):
                return text
            is_empty = is_empty or text == ""
        return "" if is_empty else None

    def ended_with_answer(self, agents: Sequence[Node]) -> bool:
        """Whether the messages on the span of an agent end with the answer of a model: a text, a
        reason why the model stopped, and no tool call.
        """
        for node in agents:
            output = self._content(node).output
            output = output or self._messages(node, node.fields.agent_output, "assistant")
            last = output[-1] if output else None
            if last is not None and last.finish_reason and answer([last]):
                return True
        return False

    def _answers(
        self, agents: Sequence[Node], steps: Sequence[Step]
    ) -> Iterator[tuple[str | None, bool]]:
        """Answers, and whether each is the last word even if it is empty."""
        for number, node in enumerate(agents):
            messages = self._messages(node, node.fields.agent_output, "assistant")
            yield last_answer(messages), number == 0
        if steps:
            yield answer(steps[-1].content.output), False
        for node in agents:
            yield answer(self._content(node).output), False

    def input_of(self, agent: Node) -> tuple[Message, ...]:
        """The messages on the span of an agent that started it; empty if none are recorded."""
        shown = self._content(agent).input
        return shown or self._messages(agent, agent.fields.agent_input, "user")

    def _asked_in_step(self, agent: Node) -> str | None:
        """What the step around an agent says that it was asked."""
        step = agent.parent
        if step is None or step.kind != "other" or not step.fields.step_input:
            return None
        return last_user_text(self._messages(step, step.fields.step_input, "user"))

    def _step(self, node: Node) -> Step:
        return Step(node, self._content(node), node.run)

    def _content(self, node: Node) -> ModelContent:
        step = self._step_around(node)
        logs = [log for span in node.own_spans for log in self._logs.get(span.span_id, ())]
        if step is not None and not logs:
            # Some instrumentations emit the log records of a model call after its span has ended.
            logs = self._logs.get(step.span.span_id, [])
        return ModelContent(node, logs, self._flags, step)

    def _step_around(self, node: Node) -> Node | None:
        """The step in which the node is the only model call."""
        step = node.parent
        if step is None or step.kind != "other" or self._models_below[id(step)] != 1:
            return None
        return step

    def _messages(self, node: Node, paths: FieldPaths, role: str) -> tuple[Message, ...]:
        """The input or output on an agent span, read as messages."""
        raw = first_or_empty(node.own_spans, paths)
        if raw == "":
            return (Message(role, ""),)
        content = decode(raw)
        if content.truncated:
            self._flags.add("truncated")
        if content.value is None:
            return ()
        messages = parse_messages(content.value, role)
        if messages or role != "user":
            return messages
        text = _user_text(content.value)
        if text is None:
            return ()
        return (Message(role, text),)


def _ends_before_turn(shown: Sequence[Message], steps: Sequence[Step]) -> bool:
    """Whether the messages that an agent was given are the turns before: they end with an answer
    that its first prompt has, too, as one of the model.
    """
    text = last_answer(shown)
    if not text or not steps:
        return False
    prompt = steps[0].content.input
    return any(message.role == "assistant" and message.text == text for message in prompt)


def _is_of_turn_before(text: str, steps: Sequence[Step]) -> bool:
    """Whether an agent states what the user said in an earlier turn: in its first prompt, an answer
    and another text of the user follow.
    """
    if not steps or last_user_text(steps[0].content.turn) in (text, None):
        return False
    *before, _ = filter(is_of_user, steps[0].content.input)
    if text not in (message.text for message in before):
        return False
    later = dropwhile(lambda message: message.text != text, steps[0].content.input)
    return any(last_answer([message]) for message in later)


def _link(steps: Sequence[Step]) -> None:
    """Give each model call whose output lacks its tool calls the next model call of its agent."""
    last: dict[str | None, Step] = {}
    for step in steps:
        before = last.get(step.run)
        if before and any(one.calls_in_next_prompt for one in before.node.dialects):
            before.content.next = step.content
        last[step.run] = step


def _down_to_first(agent: Node | None, steps: Sequence[Step]) -> list[Node]:
    """The agent, and those inside it that made the first of the model calls for it, outermost
    first.
    """
    if agent is None:
        return []
    path: list[Node] = []
    node = steps[0].node.agent if steps else None
    while node is not None and node is not agent and len(path) < MAX_ANCESTORS:
        path.append(node)
        node = node.agent
    is_work_of_agent = node is agent and all(one.tool is agent.tool for one in path)
    return [agent, *reversed(path)] if is_work_of_agent else [agent]


def _user_text(value: Any) -> str | None:
    """The only text in the input of a graph or function, if its name says that a user wrote it.
    Under other names it is data.
    """
    if not isinstance(value, dict):
        return None
    texts = [(key, item) for key, item in value.items() if isinstance(item, str) and item]
    if len(texts) != 1:
        return None
    [(key, text)] = texts
    if key in _USER_TEXT_KEYS:
        return as_id(text)
    return None
