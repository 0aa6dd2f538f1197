"""What an agent was asked and what it answered: its nodes and model calls come in, texts go out.

Both may be said by the agent's own span, by an attribute meant for it or in messages; else the
agent's model calls show them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, first
from pathgauge.collector.core.invocations.errors import error_of
from pathgauge.collector.core.invocations.messages.message import (
    Message,
    answer,
    last_answer,
    last_user_text,
)
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id, as_text, decode
from pathgauge.collector.core.invocations.model_messages import ModelContent
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.spans import LogRecord
from pathgauge.scorers.types import Flag

_WORDS = frozenset(
    {"question", "query", "prompt", "request", "text", "task"}
    | {"user_input", "user_query", "user_message", "user_question", "user_prompt", "user_request"}
)
"""What programs call the words of their users."""


class Step(NamedTuple):
    """One model call of an invocation: its node, its messages, and the agent run that made it."""

    node: Node
    content: ModelContent

    @property
    def run(self) -> str | None:
        """The span id of the agent that made the call; `None` outside any agent."""
        return self.node.agent.span.span_id if self.node.agent else None


class Dialogue:
    """The messages of one invocation."""

    def __init__(
        self, nodes: Sequence[Node], logs: Mapping[str | None, list[LogRecord]], flags: set[Flag]
    ) -> None:
        """`logs` are those of the trace by span id, in time order; what is found cut or removed is
        added to `flags`.
        """
        self._logs = logs
        self._flags = flags
        models = [node for node in nodes if node.kind == "model"]
        self._models_below = Counter(id(node.parent) for node in models) if logs else Counter[int]()
        self.steps = [Step(node, self._content(node)) for node in models]
        self.rounds = [Step(node, self._content(node)) for node in nodes if node.kind == "tools"]
        """The spans that carried out several tool calls, with the results as their output."""

    def asked(self, agent: Node | None, steps: Sequence[Step]) -> str | None:
        """What the user, or the agent above, asked; `steps` are the agent's own model calls."""
        own = None
        if agent is not None:
            own = last_user_text(
                self._content(agent).input
                or self._messages(agent, agent.fields.agent_input, "user")
            )
        return own or (last_user_text(steps[0].content.input) if steps else None)

    def answered(self, agents: Sequence[Node], steps: Sequence[Step]) -> str | None:
        """What one of the answering `agents` states or gave back, else what the last of the model
        calls answered.
        """
        stated = next(
            (
                text
                for node in agents
                if (text := as_text(first(node.own_spans, node.fields.final_response))) is not None
            ),
            None,
        )
        if stated is not None:
            return stated
        if steps and error_of(steps[-1].node) is not None:
            return None
        given = (
            last_answer(self._messages(node, node.fields.agent_output, "assistant"))
            for node in agents
        )
        shown = (answer(steps[-1].content.output) for _ in steps[-1:])
        repeated = (answer(self._content(node).output) for node in agents)
        return next((text for texts in (given, shown, repeated) for text in texts if text), None)

    def _content(self, node: Node) -> ModelContent:
        logs = [log for span in node.own_spans for log in self._logs.get(span.span_id, ())]
        return ModelContent(node, logs or self._logs_beside(node), self._flags)

    def _logs_beside(self, node: Node) -> Sequence[LogRecord]:
        """The log records of the step around a model call, where they were emitted after the call's
        own span had ended.
        """
        step = node.parent
        if step is None or step.kind != "other" or self._models_below[id(step)] != 1:
            return ()
        return self._logs.get(step.span.span_id, ())

    def _messages(self, node: Node, places: FieldPaths, role: str) -> tuple[Message, ...]:
        """What an agent's span holds of its input or output, read as messages."""
        content = decode(first(node.own_spans, places))
        if content.truncated:
            self._flags.add("truncated")
        messages = () if content.value is None else parse_messages(content.value, role)
        only = _only_text(content.value) if role == "user" and not messages else None
        return messages if only is None else (Message(role, only),)


def _only_text(value: Any) -> str | None:
    """The only text in the input of a graph or a function, when its name says that a user wrote it;
    other names are those of data.
    """
    texts = (
        [(key, item) for key, item in value.items() if isinstance(item, str) and item]
        if isinstance(value, dict)
        else []
    )
    return as_id(texts[0][1]) if len(texts) == 1 and texts[0][0] in _WORDS else None
