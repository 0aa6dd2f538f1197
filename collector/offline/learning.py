"""Proposes a dialect table for telemetry that no dialect understands, with the evidence for it.

Each attribute of the spans of a scope is looked at alone: what it states is what the fallback
dialect recognises in it. The table says the same as the fallback would, but by keys, so that a
person can correct it, and so that it holds where the structure is ambiguous.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from pathgauge.collector.core.invocations.dialects import Kind, Registry
from pathgauge.collector.core.invocations.dialects.understood import Understood
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.scorers.matching.wording import counted

_OF: Mapping[Kind, tuple[tuple[str, Callable[[Understood], Any]], ...]] = {
    "agent": (
        ("agent_name", Understood.agent_name),
        ("agent_input", lambda one: one.conversation("in")),
        ("agent_output", lambda one: one.conversation("out")),
    ),
    "model": (
        ("input_messages", lambda one: one.conversation("in")),
        ("output_messages", lambda one: one.conversation("out")),
        ("request_model", lambda one: one.model("in")),
        ("response_model", lambda one: one.model("out")),
        ("finish_reasons", Understood.finish_reason),
    ),
    "tool": (
        ("tool_name", Understood.tool_name),
        ("call_id", Understood.call_id),
        ("arguments", Understood.arguments),
        ("result", Understood.result),
    ),
}
_OF_ALL: tuple[tuple[str, Callable[[Understood], Any]], ...] = (
    ("conversation_id", Understood.conversation_id),
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,30}")
_MAX_SHAPE = 100
_MAX_EXAMPLE = 80


@dataclass(slots=True)
class Learned:
    """What the spans of one scope show."""

    scope: str
    spans: Counter[Kind] = field(default_factory=Counter)
    """How many spans there are of each kind."""
    kinds: dict[str, Counter[tuple[str, Kind]]] = field(default_factory=dict)
    """Of each attribute that states kinds: how often a value stood for a kind."""
    fields: dict[str, Counter[str]] = field(default_factory=dict)
    """Of each field: how many spans have it in which attribute."""
    examples: dict[tuple[str, str], Any] = field(default_factory=dict)
    """A value of a field in an attribute."""
    names: Counter[tuple[str, Kind]] = field(default_factory=Counter)
    """How often a span's name began with a word and was of a kind."""
    unread: Counter[str] = field(default_factory=Counter)
    """The names of the spans that were not understood."""


def learn(spans: Iterable[Span], registry: Registry) -> list[Learned]:
    """What can be proposed, for each scope with unread spans."""
    spans = list(spans)
    scopes = {
        span.scope.name for span in spans if registry.is_unread(span, registry.classify(span))
    }
    found = {scope: Learned(scope) for scope in sorted(scopes)}
    for span in spans:
        one = found.get(span.scope.name)
        if one is not None:
            _add(one, span)
    return list(found.values())


def _add(learned: Learned, span: Span) -> None:
    whole = Understood(span)
    kind = whole.kind
    if kind is None:
        learned.unread[re.sub(r"\d+", "N", span.name)[:_MAX_EXAMPLE]] += 1
        return
    kind = "agent" if kind == "chain" else kind
    learned.spans[kind] += 1
    learned.names[re.split(r"[ .\d]", span.name, maxsplit=1)[0], kind] += 1
    for key, value in span.attributes.items():
        alone = Understood(span, {key: value})
        stated = alone.stated_kind()
        if stated is not None:
            learned.kinds.setdefault(key, Counter())[(str(value), stated)] += 1
        for name, read in (*_OF.get(kind, ()), *_OF_ALL):
            if stated is None and read(alone) is not None and read(whole) is not None:
                _note(learned, name, key, value)
        for name, path in _counts(key, value):
            if kind == "model" and whole.tokens() is not None:
                _note(learned, name, path, value)


def _note(learned: Learned, name: str, path: str, value: Any) -> None:
    learned.fields.setdefault(name, Counter())[path] += 1
    learned.examples.setdefault((name, path), value)


_COUNTED = {
    "input_tokens": re.compile(r"(?:input|prompt)", re.I),
    "output_tokens": re.compile(r"(?:output|completion)", re.I),
}
_NO_COUNT = re.compile(r"cache|detail|reason|audio|total|cost", re.I)


def _counts(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """The paths of token counts: an attribute, or `key > member` of one with usage."""
    content = decoded(value)
    if isinstance(content, dict) and re.search("usage", key, re.I):
        members = [(f"{key} > {name}", name, item) for name, item in content.items()]
    else:
        members = [(key, key, content)] if re.search("token", key, re.I) else []
    for path, name, item in members:
        if not isinstance(item, int) or isinstance(item, bool) or _NO_COUNT.search(name):
            continue
        for count, pattern in _COUNTED.items():
            if pattern.search(name):
                yield count, path


# The proposal as YAML


def as_yaml(learned: Sequence[Learned], *, content: bool = False) -> str:
    """The section `dialects` for a configuration, with the evidence as comments. `content`: with an
    example of each value instead of its shape.
    """
    lines = ["dialects:"]
    names = Counter(_name(one.scope) for one in learned)
    for number, one in enumerate(learned, start=1):
        name = _name(one.scope)
        name = name if names[name] == 1 else f"{name}_{number}"
        lines += [f"  {_quoted(name)}:"]
        lines += [f"  {line}" for line in _table(one, content=content)]
    return "\n".join(lines) + "\n"


def _table(one: Learned, *, content: bool) -> Iterator[str]:
    yield f"  scopes: [{_quoted(one.scope)}]"
    yield from _kind_lines(one)
    yield "  fields:"
    for name, paths in one.fields.items():
        of = sum(one.spans[kind] for kind, fields in _OF.items() if name in dict(fields))
        of = of or (one.spans["model"] if name in _COUNTED else one.spans.total())
        for path, count in paths.most_common():
            example = _example(one.examples[name, path], content=content)
            yield f"    # {count} of {counted(of, 'span')} have {_printable(path)}: {example}"
        yield f"    {name}: [{', '.join(map(_path, (path for path, _ in paths.most_common())))}]"
    missing = [name for name in _all_fields() if name not in one.fields]
    if missing:
        yield f"  # Not found: {', '.join(missing)}"
    for name, count in one.unread.most_common(10):
        yield f"  # Not understood: {counted(count, 'span')} {_quoted(name)}"


def _kind_lines(one: Learned) -> Iterator[str]:
    if one.kinds:
        key, values = max(one.kinds.items(), key=lambda item: item[1].total())
        yield f"  kind: {_quoted(key)}"
        yield "  kinds:"
        for (value, kind), count in values.most_common():
            yield f"    {_quoted(value)}: {kind}  # {counted(count, 'span')}"
        return
    yield "  # No attribute states what a span represents. How their names begin:"
    yield "  names:"
    kinds_of = Counter(name for name, _ in one.names)
    for (name, kind), count in one.names.most_common():
        line = f"{_quoted(name)}: {kind}  # {counted(count, 'span')}"
        yield f"    {line}" if name and kinds_of[name] == 1 else f"    # ambiguous: {line}"


def _all_fields() -> list[str]:
    names = [name for fields in (*_OF.values(), _OF_ALL) for name, _ in fields]
    return [*names, *_COUNTED]


def _name(scope: str) -> str:
    return re.sub(r"\W+", "_", scope).strip("_") or "unnamed"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


def _quoted(text: str) -> str:
    return yaml.safe_dump(text, default_style='"', width=10_000).strip()


def _path(path: str) -> str:
    key, _, member = path.partition(" > ")
    if not member:
        return _quoted(key)
    return f"{{attribute: {_quoted(key)}, member: [{_quoted(member)}]}}"


def _example(value: Any, *, content: bool) -> str:
    if content:
        return repr(value)[:_MAX_EXAMPLE]
    return _shape(decoded(value), 0)[:_MAX_SHAPE]


def _member(key: str) -> str:
    """The name of a member, unless it may be content itself."""
    return key if _IDENTIFIER.fullmatch(key) else "..."


def _shape(value: Any, level: int) -> str:
    """Names of members and types, without any content."""
    if isinstance(value, dict) and level < 3:
        members = (f"{_member(key)}: {_shape(one, level + 1)}" for key, one in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list) and value and level < 3:
        return f"[{_shape(value[0], level + 1)}]"
    return type(value).__name__
