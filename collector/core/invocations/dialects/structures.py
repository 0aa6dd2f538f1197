"""Recognises messages, tool calls and token counts by their structure, whatever the attribute is
called that has them.

Only shapes that nothing else has count: a message has a role that model APIs know, a call has a
name and arguments, token counts come as a pair of integers. Two values of one thing that differ are
none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pathgauge.collector.core.invocations.dialects.vocabulary import words
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_int, decoded

_ROLES = frozenset(
    {"user", "assistant", "system", "tool", "model", "human", "ai", "developer", "function"}
)
_CONTENT = frozenset(
    {"content", "parts", "tool_calls", "toolCalls", "text", "contents", "message.content"}
)
_HOLDERS = frozenset(
    {
        *("messages", "choices", "candidates", "generations", "contents", "input", "output"),
        *("message", "content", "replies", "tool_messages", "result", "data", "inputs", "outputs"),
        *("kwargs", "response", "last_message", "new_message", "update"),
    }
)
_TYPES = frozenset({"json", "text", "string", "raw", "object", "list", "messages", "chat_messages"})
"""Types that instrumentations state beside a value."""
_SCHEMA = frozenset({"properties", "$defs", "required", "type"})
"""Members of the schema of a tool's arguments."""
_MAX_LEVELS = 5
_MAX_ITEMS = 50

_COUNTS = frozenset({"tokens", "token", "count"})
_INPUT, _OUTPUT = frozenset({"input", "prompt"}), frozenset({"output", "completion", "candidates"})
_PARTIAL = frozenset(
    {"cache", "cached", "details", "detail", "audio", "reasoning", "total", "read", "write"}
)


def has_messages(value: Any, level: int = 0) -> bool:
    """Whether a decoded value is a message with a role, or contains some where requests, responses
    and states have them.
    """
    if level > _MAX_LEVELS:
        return False
    if isinstance(value, list):
        return any(has_messages(item, level + 1) for item in value[:_MAX_ITEMS])
    if not isinstance(value, dict):
        return False
    if _is_message(value):
        return True
    return any(
        has_messages(decoded(item), level + 1) for key, item in value.items() if key in _HOLDERS
    )


def _is_message(value: Mapping[str, Any]) -> bool:
    role = value.get("role", value.get("type"))
    if isinstance(role, str) and role.lower() in _ROLES:
        return not _CONTENT.isdisjoint(value) or isinstance(value.get("data"), dict)
    if value.get("type") in ("function_call", "function_call_output"):
        return "call_id" in value or "name" in value
    return bool(value.get("lc")) and isinstance(value.get("kwargs"), dict)


def most_told(values: Iterable[Any], role: str) -> Any:
    """Of several values with messages, the one that tells most; `None` if there is none."""
    best, told = None, 0
    for value in values:
        messages = [one for one in parse_messages(value, role) if one.is_recorded]
        wanted = [one for one in messages if role != "assistant" or one.role == "assistant"]
        amount = sum(1 + 2 * len(one.calls) + len(one.responses) for one in wanted)
        if amount > told:
            best, told = value, amount
    return best


def listed_calls(value: Any) -> list[dict[str, Any]] | None:
    """The tool calls in a list that has nothing else."""
    if not isinstance(value, list) or not value:
        return None
    found = []
    for item in map(decoded, value[:_MAX_ITEMS]):
        inner = item.get("function") if isinstance(item, dict) else None
        call = inner if isinstance(inner, dict) else item
        if not isinstance(call, dict) or not isinstance(_member(call, ("name",)), str):
            return None
        arguments = _member(call, ("arguments", "args", "input"))
        if arguments is None:
            return None
        call_id = _member(item, ("id", "call_id"))
        found.append({"name": _member(call, ("name",)), "arguments": arguments, "id": call_id})
    return found


def _member(value: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """A member of any of these names, alone or after `tool`: `toolName`, `tool_call_id`."""
    for key, item in value.items():
        found = tuple(word for word in words(key) if word not in ("tool", "function"))
        joined = "_".join(found)
        if joined in names or (found[:1] == ("call",) and "_".join(found[1:]) in names):
            return item
    return None


def answer_with_calls(value: Any) -> dict[str, Any] | None:
    """A reply that has a text and its tool calls as members, as a message."""
    if not isinstance(value, dict) or "role" in value:
        return None
    calls = next(
        (
            found
            for key, item in value.items()
            if words(key)[-2:] in (("tool", "calls"), ("function", "calls"))
            and (found := listed_calls(decoded(item)))
        ),
        None,
    )
    text = value.get("text", value.get("content"))
    if calls is None and not (isinstance(text, str) and text and has_usage(value)):
        return None
    return {"role": "assistant", "content": text or None, "tool_calls": calls or []}


def has_usage(value: Any) -> bool:
    """Whether an object has counts of tokens."""
    return bool(list(_usages(value, 0)))


def usage_in(value: Any) -> tuple[int, int] | None:
    """The counts of input and output tokens in a decoded value, if it has one pair of them."""
    found: tuple[int, int] | None = only(_usages(value, 0))
    return found


def _usages(value: Any, level: int) -> Iterator[tuple[int, int]]:
    if level > _MAX_LEVELS:
        return
    if isinstance(value, list):
        for item in value[:_MAX_ITEMS]:
            yield from _usages(item, level + 1)
    if not isinstance(value, dict):
        return
    pair = token_pair(value)
    if pair is not None:
        yield pair
        return
    for key, item in value.items():
        if isinstance(item, dict | list) and key not in ("messages", "arguments", "args"):
            yield from _usages(item, level + 1)


def token_pair(value: Mapping[str, Any], *, named: bool = True) -> tuple[int, int] | None:
    """The counts among the members of an object. `named`: only members whose names say that they
    count tokens; an object that is called usage may have just `input` and `output`.
    """
    if not named and any(_is_cached(key) and item for key, item in value.items()):
        return None  # the input may be without the cached part
    counts = _counts(value, named=named)
    given = only(count for parts, count in counts if parts & _INPUT)
    taken = only(count for parts, count in counts if parts & _OUTPUT)
    return None if given is None or taken is None else (given, taken)


def _counts(value: Mapping[str, Any], *, named: bool) -> list[tuple[frozenset[str], int | None]]:
    """The members that may be counts of all tokens, with the words of their names."""
    found = [(frozenset(words(key)), item) for key, item in value.items() if _is_number(item)]
    return [
        (parts, as_int(item))
        for parts, item in found
        if not parts & _PARTIAL and (not named or parts & _COUNTS)
    ]


def _is_number(value: Any) -> bool:
    """Whether it may be a count, also one that is written as text."""
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _is_cached(key: str) -> bool:
    return not {"cache", "cached"}.isdisjoint(words(key)) and "tokens" not in words(key)


def model_in(value: Any, level: int = 0) -> str | None:
    """The model that a request or response names."""
    if isinstance(value, list):
        listed: str | None = only(model_in(item, level + 1) for item in value[:_MAX_ITEMS])
        return listed
    if not isinstance(value, dict) or level > _MAX_LEVELS:
        return None
    for key in ("model", "model_name", "modelId", "modelVersion"):
        if isinstance(value.get(key), str):
            return str(value[key])
    inner: str | None = only(
        model_in(item, level + 1)
        for key, item in value.items()
        if key in ("raw", "meta", "response", "response_metadata", "replies")
    )
    return inner


def only(values: Iterable[Any]) -> Any:
    """The value, if all are equal; `None` for none and for values that differ."""
    distinct: list[Any] = []
    for value in values:
        if value is not None and value not in distinct:
            distinct.append(value)
    return distinct[0] if len(distinct) == 1 else None


_TYPES_OF_SCHEMAS = ("string", "number", "integer", "boolean", "array", "object", "null")


def is_no_schema(value: Any) -> bool:
    """Whether a value is an object, and not the schema of one."""
    return isinstance(value, dict) and _SCHEMA.isdisjoint(value)


def has_schemas(value: Any) -> bool:
    """Whether a value is an object, and each of its members the schema of an argument."""
    return isinstance(value, dict) and bool(value) and all(map(_is_schema, value.values()))


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in _TYPES_OF_SCHEMAS


def without_type(value: Any) -> Any:
    """A value without the type that stands beside it."""
    if isinstance(value, dict) and value.keys() == {"type", "value"}:
        kind = value["type"]
        if isinstance(kind, str) and kind in _TYPES:
            return decoded(value["value"])
    return value


def prompt_in_message(value: Any) -> Any:
    """The messages in the text of the only message, if it is a whole prompt."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        inner = decoded(value[0].get("content"))
        if isinstance(inner, list) and has_messages(inner):
            return inner
    return value
