"""Telemetry that no dialect understands, read as far as it is certain.

The registry asks this dialect last, and only about spans that no instrumentation's dialect matches.
What a span represents is known from an attribute that states it (`kind`, `type`, `operation`), or
from words of its name together with what it holds (`understood`).

Every invocation that is read this way has the flag `unknown_dialect`. Attributes of content are not
known beforehand, so nothing is read with `content: false`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pathgauge.collector.core.invocations.dialects import structures
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.exceptions import recorded_exception
from pathgauge.collector.core.invocations.dialects.field_paths import Derived
from pathgauge.collector.core.invocations.dialects.genai import (
    OPERATIONS,
    WITHOUT_AGENTS,
    is_unknown_operation,
)
from pathgauge.collector.core.invocations.dialects.telling_names import IN, OUT, direction
from pathgauge.collector.core.invocations.dialects.understood import (
    ARGUMENTS,
    TEXT_KEYS,
    Understood,
)
from pathgauge.collector.core.invocations.dialects.vocabulary import speaks_of_agents, words
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.core.otlp.spans import Span

NAME = "unknown"

_OPERATION_KEY = "gen_ai.operation.name"
_KNOWN = (*OPERATIONS, *WITHOUT_AGENTS)
_READ_BY_ALL = frozenset({"session.id", "user.id", "enduser.id", "error.type"})
_CONTENT_KEYS = TEXT_KEYS | IN | OUT | ARGUMENTS | {"messages", "events"}
_STATES = frozenset({"success", "succeeded", "is_error", "ok"})
"""Members of what a framework puts around a result, beside that for its error."""
_MESSAGES = frozenset({"gen_ai.input.messages", "gen_ai.output.messages"})


def _unwrapped(value: Any) -> Result:
    """A result. An object with nothing but a `result` may be that, or what a framework wraps around
    one, so that it is unknown.
    """
    if isinstance(value, dict):
        for name in ("output", "result"):
            if name in value and structures.has_messages(value[name]):
                return Result(value[name])
        if _may_wrap(value):
            return Result()
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        [message] = value
        if message.keys() == {"role", "content"}:
            return Result(decoded(message["content"]))
    return Result(value)


def _may_wrap(value: dict[str, Any]) -> bool:
    """Whether an object may be what a framework puts around a result."""
    names = [words(name)[-1:] for name in value]
    if len(names) == 1 and names[0] and names[0][0] in (*OUT, "error"):
        return True
    if value.keys() == {"type", "value"} or "tool_name" in value:
        return True
    return "error" in value and value["error"] is None and not _STATES.isdisjoint(value)


def may_hold(span: Span) -> bool:
    """Whether the names of a span and its attributes suggest that it belongs to an agent's run."""
    keys = [key for key in span.attributes if not key.startswith("gen_ai.")]
    if len(keys) < len(span.attributes):
        if _OPERATION_KEY not in span.attributes or not span.name.startswith(_KNOWN):
            return True
        return _MESSAGES.isdisjoint(span.attributes) and adds_to_conventions(span)
    directions = {direction(words(key)) for key in keys}
    return {"in", "out"} <= directions or speaks_of_agents((span.name, *keys))


def adds_to_conventions(span: Span) -> bool:
    """Whether other attributes than those of the conventions may have content or names."""
    return any(
        _tells(words(key))
        for key in span.attributes
        if not key.startswith("gen_ai.") and key not in _READ_BY_ALL
    )


def _tells(parts: tuple[str, ...]) -> bool:
    if not parts:
        return False
    if parts[-2:] in (("thread", "id"), ("conversation", "id"), ("session", "id")):
        return True
    if parts[-2:] in (("agent", "name"), ("tool", "name")):
        return True
    return direction(parts) is not None and parts[-1] in _CONTENT_KEYS


def speaks(span: Span) -> bool:
    """Whether a span that was not read speaks of agents nevertheless."""
    return is_unknown_operation(span) and speaks_of_agents((span.name, *span.attributes))


def unknown(is_unknown: Callable[[Span], bool]) -> Dialect:
    """The dialect for the spans of which a registry knows that no other dialect matches them."""
    last: list[tuple[Span, Understood | None]] = []
    """The span that was read last: its fields are asked for one after the other."""

    def understood(span: Span) -> Understood | None:
        found = next(iter(last), None)  # read once: another thread may replace it
        if found is None or found[0] is not span:
            found = (span, Understood(span) if is_unknown(span) else None)
            last[:] = [found]
        return found[1]

    def derived(read: Callable[[Understood], Any]) -> tuple[Derived, ...]:
        def derive(span: Span) -> Any:
            found = understood(span)
            return None if found is None else read(found)

        return (Derived(derive),)

    def kind(span: Span) -> Kind | None:
        found = understood(span)
        return None if found is None else found.kind

    def failure(span: Span) -> str | None:
        """The recorded exception, if nothing came out: others may have been handled."""
        found = understood(span)
        if found is None or found.result() is not None:
            return None
        return recorded_exception(span)

    def part(index: int) -> Callable[[Understood], int | None]:
        def read(one: Understood) -> int | None:
            tokens = one.tokens()
            return None if tokens is None else tokens[index]

        return read

    return Dialect(
        name=NAME,
        matches=may_hold,
        kind=kind,
        unwrap_arguments=callable_arguments,
        unwrap_result=_unwrapped,
        failure=failure,
        fields=Fields(
            agent_name=derived(Understood.agent_name),
            workflow_name=derived(Understood.workflow_name),
            conversation_id=derived(Understood.conversation_id),
            tool_name=derived(Understood.tool_name),
            call_id=derived(Understood.call_id),
            arguments=derived(Understood.arguments),
            result=derived(Understood.result),
            request_model=derived(lambda one: one.model("in")),
            response_model=derived(lambda one: one.model("out")),
            input_tokens=derived(part(0)),
            output_tokens=derived(part(1)),
            input_messages=derived(lambda one: one.conversation("in")),
            output_messages=derived(lambda one: one.conversation("out")),
            agent_input=derived(lambda one: one.conversation("in")),
            agent_output=derived(lambda one: one.conversation("out")),
            finish_reasons=derived(Understood.finish_reason),
        ),
    )
