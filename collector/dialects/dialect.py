"""What a dialect is: how to recognise the spans of one instrumentation, and a table of where its fields live.

The shared reading beside this file resolves every field on its own over all dialects, since spans of several dialects, and
single spans that speak two, are common. A dialect says only what is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from collector.dialects.messages import Message
from collector.spans import Span

Kind = Literal["agent", "workflow", "model", "tool", "other", "dropped"]
"""What a span stands for. `other` spans count only as links of the tree; `dropped` ones describe nothing that happened."""

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """Attribute keys by field, the first that is present wins."""

    agent_name: Keys = ()
    agent_version: Keys = ()
    workflow_name: Keys = ()
    conversation_id: Keys = ()
    tool_name: Keys = ()
    tool_type: Keys = ()
    call_id: Keys = ()
    arguments: Keys = ()
    result: Keys = ()
    request_model: Keys = ()
    response_model: Keys = ()
    input_tokens: Keys = ()
    output_tokens: Keys = ()
    total_input_tokens: Keys = ()
    total_output_tokens: Keys = ()
    input_messages: Keys = ()
    output_messages: Keys = ()
    final_response: Keys = ()
    error_type: Keys = ()


MessageReader = Callable[[Any, str], tuple[Message, ...]]
"""Reads the decoded value of a message field; the role is the one of messages that name none."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One instrumentation's way of describing agents."""

    name: str
    speaks: Callable[[Span], bool]
    """Whether this dialect made the span."""
    kind: Callable[[Span], Kind | None]
    """What the span stands for; `None` when this dialect cannot tell. Asked of spans that the dialect speaks."""
    fields: Fields = Fields()
    anchors: Keys = ()
    """Prefixes of the names of spans that may be an invocation's anchor, told without decoding attributes."""
    messages: MessageReader | None = None
    """Reads this dialect's own message attributes, where they are not those of the GenAI conventions."""
    muted: Callable[[Sequence[Span]], Keys] | None = None
    """Given the model spans of an invocation, the keys under which `{}` means that content was not captured."""
