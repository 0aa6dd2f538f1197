"""Which attributes scoring needs when content is not kept.

The dialects declare them: `Dialect.fields` and `Dialect.reads`, and `Derived.reads` for fields that
a function computes. Only the keys that the code shared by all dialects reads are listed here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    FieldPath,
    FieldPaths,
    Flattened,
    InEvent,
    JsonMember,
    JsonPath,
)
from pathgauge.collector.core.invocations.messages.values import REDACTED_KEY
from pathgauge.collector.core.invocations.rebuilt import FLAGS
from pathgauge.collector.core.invocations.scenario import RUN_KEYS, TURN, WRAPPERS
from pathgauge.collector.core.invocations.session_end import KEY as SESSION_END, OUTCOME

_NAME_FIELDS = (
    "agent_name",
    "agent_version",
    "workflow_name",
    "tool_name",
    "tool_type",
    "final_tool",
    "request_model",
    "response_model",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "total_input_tokens",
    "total_output_tokens",
    "finish_reasons",
    "error_type",
)
_ID_FIELDS = ("conversation_id", "user_id", "call_id", "response_id")

_SHARED_KEYS = (
    "event.name",
    "exception.type",
    "service.version",
    TURN,
    SESSION_END,
    REDACTED_KEY,
)


class NeededKeys:
    """The needed keys for one registry of dialects and the configured scenario keys."""

    def __init__(self, registry: Registry, scenario_keys: Sequence[str]) -> None:
        self.registry = registry
        read = tuple(path for dialect in registry.dialects for path in dialect.reads)
        names = self._paths(_NAME_FIELDS)
        ids = self._paths(_ID_FIELDS)
        of_dialects = [key for key in _keys(read) if not _is_common(key)]
        self.names = frozenset(
            (*_keys(names), *of_dialects, *_SHARED_KEYS, *_wrapped_scenario_keys(scenario_keys))
        )
        """Keys of names and numbers that scoring compares or groups by; not personal data."""
        self.ids = frozenset((*_keys(ids), *_keys(read), FLAGS)) - self.names
        """Keys of values that must stay different from each other."""
        self.needed = self.names | self.ids
        """Everything that scoring needs except messages, arguments, results and answers."""
        every = (*names, *read, *ids)
        flattened = (path for path in every if isinstance(path, Flattened))
        self.prefixes = tuple(f"{path.prefix}." for path in flattened)
        """Prefixes of needed keys."""
        self.members = self._members(every, scenario_keys)
        """Needed members of JSON attributes: paths by key."""
        self.event_keys = {**_event_keys(every), SESSION_END: frozenset({OUTCOME})}
        """Needed attributes of span events, by the name of the event."""
        self.outputs = self._paths(("output_messages",))
        """The field paths of model outputs."""

    def _paths(self, fields: Sequence[str]) -> FieldPaths:
        found: dict[FieldPath, None] = {}
        for dialect in self.registry.dialects:
            for field in fields:
                found.update(dict.fromkeys(getattr(dialect.fields, field)))
        return tuple(found)

    def _members(
        self, paths: FieldPaths, scenario_keys: Sequence[str]
    ) -> dict[str, tuple[JsonPath, ...]]:
        metadata_keys = (*_with_aliases(scenario_keys), *RUN_KEYS, TURN)
        found: dict[str, dict[JsonPath, None]] = defaultdict(dict)
        for path in _attributes(paths):
            if isinstance(path, JsonMember) and path.path:
                found[path.key][path.path] = None
        for key in metadata_keys:
            found["metadata"][key,] = None
        return {key: tuple(found[key]) for key in found if key not in self.needed}


def _is_common(key: str) -> bool:
    """Whether a key has no namespace, such as `name`, so that others use it for anything."""
    return not {".", ":"} & set(key)


def _attributes(paths: FieldPaths) -> Iterator[str | JsonMember]:
    """The attributes at the field paths, and those that functions read for them."""
    for path in paths:
        if isinstance(path, Derived):
            yield from path.reads
        elif isinstance(path, str | JsonMember):
            yield path


def _keys(paths: FieldPaths) -> Iterator[str]:
    """The keys of attributes that are needed as a whole."""
    for path in _attributes(paths):
        if isinstance(path, str):
            yield path
        elif not path.path:
            yield path.key


def _event_keys(paths: Iterable[FieldPath]) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        if isinstance(path, InEvent):
            found[path.event].add(path.key)
    return {event: frozenset(keys) for event, keys in found.items()}


def _wrapped_scenario_keys(keys: Sequence[str]) -> Iterator[str]:
    yield from (*keys, *RUN_KEYS)
    yield from (wrapper + key for wrapper in WRAPPERS for key in _with_aliases(keys))


def _with_aliases(keys: Sequence[str]) -> tuple[str, ...]:
    return (*keys, *(key.replace(".", "_") for key in keys))
