"""What is certain about a span of an unknown framework: its kind, content, names and numbers.

Messages, calls and tokens are recognised by their structure (`structures`), what goes in and comes
out by words of the attribute's name (`telling_names`). What is ambiguous is left out: two
attributes that contradict each other, a text that may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pathgauge.collector.core.invocations.dialects import structures
from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.field_paths import unflattened
from pathgauge.collector.core.invocations.dialects.telling_names import (
    IN,
    OUT,
    direction as direction_of,
    kind_in,
    names_model,
    stated_kind,
)
from pathgauge.collector.core.invocations.dialects.vocabulary import words
from pathgauge.collector.core.invocations.messages.reprs import shows_object
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Attributes, Span

_KIND_KEYS = frozenset({"kind", "type", "subtype", "operation"})
_NAMES_IN_CODE = frozenset({("code", "function", "name"), ("span", "function", "name")})
"""Attributes with the name of the function in the code, which may be that of an agent."""

_AGENT_NAME = (("agent", "name"),)
_OPERATION = (("operation", "name"), ("operation", "id"))
_TEXT_MEMBERS = frozenset({"prompt", "question", "query", "input", "text", "message"})
ARGUMENTS = frozenset({"args", "arguments", "kwargs", "parameters"})
_NO_CONTENT = frozenset(
    {"type", "types", "spec", "schema", "mime", "id", "ids", "tokens", "token", "count", "usage"}
    | {"model", "time", "duration", "reason", "reasons", "status", "code", "size", "length"}
    | {"name", "headers", "header", "role", "http", "config", "settings", "tools", "definitions"}
    | {"ms", "ns", "us", "seconds"}
)
_END = re.compile(r"[.\s](tool|task|agent|workflow|chat)$")
_OTHERS = frozenset({"user", "human"})
"""Names of agents that stand for people."""
_METHOD = re.compile(r"[A-Z]\w*\.\w+$")
"""The name of a method with its class before it, which is the code of the framework."""
_NAME = re.compile(r"[\w/:-]+")
"""With a dot it would be the method of a class."""
_GENERIC = frozenset(
    {"agent", "run", "invoke", "call", "tool", "tools", "model", "llm", "chat", "execute", "step"}
    | {"invocation", "workflow", "generate", "chain", "handle", "request"}
)
_ARGUMENT = re.compile(r"[._](?:kwargs|arguments)\.([A-Za-z_]\w*)$")
"""The end of the name of an attribute that holds one argument of a call."""
_CONSTANTS = (True, False, "True", "False", "true", "false", "None", "null")
"""What says how something goes in or comes out, and is no text of anybody."""
TEXT_KEYS = frozenset({"text", "content", "value", "message", "data"})
_NUMBER = re.compile(r"\.\d+(?:\.|$)")
_MAX_KIND = 40


class Understood:
    """What is certain about one span."""

    def __init__(self, span: Span, attributes: Attributes | None = None) -> None:
        """`attributes`: instead of those of the span."""
        attributes = span.attributes if attributes is None else attributes
        self.span = span
        self._values: dict[str, Any] = {}
        prefixes: dict[str, None] = {}
        for key, value in attributes.items():
            found = _NUMBER.search(key)
            if found is None:
                self._values[key] = value
            else:
                prefixes[key[: found.start()]] = None
        for prefix in prefixes:
            self._values.setdefault(prefix, unflattened(attributes, prefix + "."))
        self.kind = self._kind()

    # What the span represents

    def _kind(self) -> Kind | None:
        stated = self.stated_kind()
        if stated == "agent" and self._explicit_tool_name() and not self._id_at(_AGENT_NAME):
            stated = "tool"  # by a rule that looks for the word in the name
        if stated == "tool" and self.tool_name() is None:
            return "handoff" if "handoff" in words(self.span.name) else None
        if stated is not None:
            return stated
        return None if self.span.serves_request else self._suggested_kind()

    def _suggested_kind(self) -> Kind | None:
        """The kind by words of the name and by what the span has."""
        named = kind_in(self.span.name)
        if self._explicit_tool_name() and self.arguments() is not None:
            return "tool"
        match named:
            case "agent" if not _METHOD.fullmatch(self.span.name) or self._has_conversation():
                return "agent"
            case "tool" if self.tool_name():
                return "tool"
            case "model" if self.tokens() or self.messages("out") is not None:
                return "model"
        if self._explicit_tool_name() and named is None and self.tokens() is None:
            return "tool" if self._is_of_call() else None
        if named is None and self.tokens() is not None and self.model("out", "in"):
            return "model"
        return None

    def _has_conversation(self) -> bool:
        return self.conversation("in") is not None or self.conversation("out") is not None

    def _is_of_call(self) -> bool:
        """Whether a span with the name of a tool is the call itself. Others mention the tool, such
        as the span of the reply that asks for it.
        """
        is_named = "tool" in words(self.span.name) or self.span.name == self._explicit_tool_name()
        return is_named or self.call_id() is not None or self.result() is not None

    def stated_kind(self) -> Kind | None:
        """The kind that attributes state, if they agree."""
        found = set()
        for key, value in self._values.items():
            parts = words(key)
            if not isinstance(value, str) or len(value) > _MAX_KIND or not parts:
                continue
            if parts[-1] in _KIND_KEYS or parts[-2:] in _OPERATION:
                kind = stated_kind(words(value))
                if kind is not None:
                    found.add(kind)
        return found.pop() if len(found) == 1 else None

    # What goes in and comes out

    def _texts(self, direction: str) -> Iterator[Any]:
        """As `_contents`, only of attributes that are content as a whole."""
        ends = TEXT_KEYS | (IN if direction == "in" else OUT)
        for key in self._values:
            if words(key)[-1:] and words(key)[-1] in ends:
                yield from self._contents(direction, keys=(key,))

    def _contents(
        self,
        direction: str,
        *,
        wanted: frozenset[str] = frozenset(),
        keys: Iterable[str] | None = None,
    ) -> Iterator[Any]:
        """The decoded values of the attributes that go `in` or come `out`."""
        for key in self._values if keys is None else keys:
            parts = words(key)
            if not parts or parts[-1] in _NO_CONTENT or direction_of(parts) != direction:
                continue
            if parts[-2:-1] == ("is",):
                continue  # a state of what comes out, such as `result.isError`
            if wanted and wanted.isdisjoint(parts):
                continue
            content = structures.without_type(decoded(self._values[key]))
            if content is None or content in ("", {}, []):
                continue
            if not isinstance(content, str) or not shows_object(content):
                yield content

    def messages(self, direction: str) -> Any:
        """The messages that go in or come out."""
        role = "user" if direction == "in" else "assistant"
        contents = list(self._contents(direction))
        found = structures.most_told(filter(structures.has_messages, contents), role)
        if found is not None:
            return structures.prompt_in_message(found)
        if direction == "out":
            replies = map(structures.answer_with_calls, contents)
            found = next((one for one in replies if one is not None), None)
            return found if found is not None else self._reply_in_parts()
        return None

    def _reply_in_parts(self) -> dict[str, Any] | None:
        """A reply whose calls and text are attributes of their own."""
        calls = structures.only(
            structures.listed_calls(decoded(value))
            for key, value in self._values.items()
            if words(key)[-2:] in (("tool", "calls"), ("function", "calls"))
        )
        text = structures.only(one for one in self._texts("out") if isinstance(one, str))
        if calls is None and (text is None or self.tokens() is None):
            return None
        return {"role": "assistant", "content": text, "tool_calls": calls or []}

    def text(self, direction: str) -> str | None:
        """The text that goes in or comes out, if there is nothing else."""
        contents = [_only_text(one) for one in self._texts(direction) if one not in _CONSTANTS]
        if all(isinstance(one, str) for one in contents):
            text = structures.only(contents)
            return text if isinstance(text, str) else None
        return None

    def conversation(self, direction: str) -> Any:
        """The messages or the text of an agent."""
        found = self.messages(direction)
        return found if found is not None else self.text(direction)

    # Tools

    def _explicit_tool_name(self) -> str | None:
        named = self._id_at((("tool", "name"),))
        if named is None:
            function = self._id_at((("function", "name"),), besides=_NAMES_IN_CODE)
            named = None if _METHOD.match(function or "") else function
        named = named or self._id_at((("call", "name"), ("definition", "name")))
        return None if named is None or named.startswith("<") else named

    def tool_name(self) -> str | None:
        """The name in an attribute of the tool, or the name of a span that is one word."""
        found = self._explicit_tool_name()
        return found if found is not None else self._own_name("tool")

    def agent_name(self) -> str | None:
        """The name in an attribute of the agent, or the name of a span that is one word."""
        found = self._id_at(_AGENT_NAME) or self._own_name("agent")
        return None if found in _OTHERS else found

    def workflow_name(self) -> str | None:
        """The name in an attribute. That of a step is no name of an agent."""
        return self._id_at((("workflow", "name"), ("flow", "name")))

    def _own_name(self, kind: Kind) -> str | None:
        if self.stated_kind() != kind:
            return None
        name = structures.only(
            _id(value)
            for key, value in self._values.items()
            if words(key)[-1:] == ("name",) and len(words(key)) <= 2
        )
        if name is not None:
            return str(name)
        end = _END.search(self.span.name)
        if end is not None and end[1] in ("agent", "workflow", "tool") and end[1] != kind:
            return None
        title = _END.sub("", self.span.name)
        if not _NAME.fullmatch(title) or _GENERIC.issuperset(words(title)):
            return None
        return title

    def arguments(self) -> Any:
        """The arguments of a tool."""
        each = {
            found[1]: decoded(value)
            for key, value in self._values.items()
            if (found := _ARGUMENT.search(key)) is not None
        }
        if each:
            return each
        found = self._only_arguments(wanted=ARGUMENTS)
        if found is None:
            found = self._only_arguments()
        if found is None:
            found = structures.only(filter(structures.is_no_schema, self._parameters()))
        if isinstance(found, dict) and not structures.has_messages(found):
            inner = found.get("input")
            is_alone = not any(item for name, item in found.items() if name != "input")
            return inner if is_alone and isinstance(inner, dict) else self._without_name(found)
        return None

    def _only_arguments(self, wanted: frozenset[str] = frozenset()) -> Any:
        """The only content that goes in and is not the schemas of the arguments."""
        contents = self._contents("in", wanted=wanted)
        return structures.only(one for one in contents if not structures.has_schemas(one))

    def _without_name(self, arguments: dict[str, Any]) -> Any:
        """The arguments, which may stand beside nothing but the name of the tool."""
        if len(arguments) == 2 and self.tool_name() in arguments.values():
            others = [item for item in arguments.values() if item != self.tool_name()]
            if len(others) == 1 and isinstance(others[0], dict):
                return others[0]
        return arguments

    def _parameters(self) -> Iterator[Any]:
        """What is called the parameters of a tool: its arguments, or their schema."""
        for key, value in self._values.items():
            if words(key)[-2:] == ("tool", "parameters"):
                yield decoded(value)

    def result(self) -> Any:
        """The result of a tool."""
        return structures.only(self._contents("out"))

    def call_id(self) -> str | None:
        """The id of a tool call."""
        return self._id_at((("call", "id"), ("tool_use", "id"), ("use", "id")))

    # Models

    def tokens(self) -> tuple[int, int] | None:
        """The counts of input and output tokens."""
        pair = structures.token_pair(self._values)
        if pair is not None:
            return pair
        usages = [
            structures.token_pair(value, named=False)
            for key, raw in self._values.items()
            if "usage" in words(key) and isinstance(value := decoded(raw), dict)
        ]
        found: tuple[int, int] | None = structures.only(usages)
        if found is None and not any(usages):
            found = structures.only(map(structures.usage_in, self._contents("out")))
        return found

    def model(self, *directions: str) -> str | None:
        """The model that was asked (`in`) or that answered (`out`)."""
        for direction in directions:
            found = structures.only(
                _id(value)
                for key, value in self._values.items()
                if names_model(words(key)) and (direction_of(words(key)) or "in") == direction
            ) or structures.only(structures.model_in(value) for value in self._contents(direction))
            if found and "/" not in found:
                return str(found)
        return None

    def finish_reason(self) -> Any:
        """Why the model stopped."""
        return structures.only(
            value
            for key, value in self._values.items()
            if words(key)[-2:] in (("finish", "reason"), ("finish", "reasons"), ("stop", "reason"))
        )

    def conversation_id(self) -> str | None:
        """The conversation, session or thread."""
        return self._id_at((("conversation", "id"), ("session", "id"), ("thread", "id")))

    def _id_at(
        self, ends: tuple[tuple[str, ...], ...], besides: frozenset[tuple[str, ...]] = frozenset()
    ) -> str | None:
        """The value of the attributes whose names end in these words, and not in the three words of
        one of `besides`; of two that differ, none.
        """
        for end in ends:
            found = structures.only(
                _id(value)
                for key, value in self._values.items()
                if words(key)[-len(end) :] == end and words(key)[-3:] not in besides
            )
            if found is not None:
                return str(found)
        return None


def _id(value: Any) -> str | None:
    """An id, also one that was written as JSON."""
    return as_id(decoded(value))


def _only_text(value: Any) -> Any:
    """The text in an object that has nothing else."""
    if isinstance(value, dict) and len(value) == 1:
        [(name, text)] = value.items()
        if name in _TEXT_MEMBERS and isinstance(text, str):
            return text
    return value
