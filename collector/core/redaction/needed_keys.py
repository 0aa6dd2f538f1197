"""Which attribute keys scoring needs, and where messages live: the dialects come in, sets of keys
go out.

What the tables of the dialects say is taken from there. Listed here is what the dialects ask spans
for in their code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from pathgauge.collector.core.invocations.dialects import Registry, langgraph
from pathgauge.collector.core.invocations.dialects.field_paths import (
    FieldPaths,
    InEvent,
    Member,
    Place,
)
from pathgauge.collector.core.invocations.messages.values import REDACTED_KEY
from pathgauge.collector.core.invocations.scenario import RUN_KEYS, TURN, WRAPPERS

Path = tuple[str | int, ...]

_NAMES: tuple[str, ...] = (
    *(
        "agent_name",
        "agent_version",
        "workflow_name",
        "tool_name",
        "tool_type",
        "request_model",
        "response_model",
    ),
    *(
        "input_tokens",
        "output_tokens",
        "total_input_tokens",
        "total_output_tokens",
        "finish_reasons",
        "error_type",
    ),
)
_IDENTITIES: tuple[str, ...] = ("conversation_id", "user_id", "call_id")

_KINDS = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.system",
    "gen_ai.transfer.mode",
    "gen_ai.workflow.nodes",
    "mcp.method.name",
    "openinference.span.kind",
    "traceloop.span.kind",
    "traceloop.entity.name",
    "llm.request.type",
    "langsmith.span.kind",
    "langfuse.observation.type",
    "langfuse.observation.level",
    "langfuse.observation.usage_details",
    "langfuse.internal.is_app_root",
    "langfuse.observation.metadata.is_langchain_root",
    "langfuse.observation.metadata.langgraph_step",
    "mlflow.spanType",
    "ai.operationId",
    "haystack.component.type",
    "haystack.component.name",
    "span.type",
    "tool_name",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_creation_tokens",
    "stop_reason",
    "success",
    "decision",
    "event.name",
    "exception.type",
    "service.name",
    "service.version",
    TURN,
    REDACTED_KEY,
)
"""What tells the kind of a span, and numbers and names that no table has."""

_GROUPS = ("gen_ai.agent.id", "messaging.destination")
"""Ids beside those in the tables."""

_LANGGRAPH = (langgraph.AGENT_NAME, langgraph.THREAD, langgraph.NODE, langgraph.PATH)
_GRAPHS = (
    "langsmith.metadata.",
    "langfuse.observation.metadata.",
    "traceloop.association.properties.",
)

_MEMBERS = (
    *(Member("metadata", (key,)) for key in _LANGGRAPH),
    Member("mlflow.spanInputs", ("from_agent",)),
)


class Structure:
    """The keys of one registry of dialects and of the scenario keys in use."""

    def __init__(self, registry: Registry, scenario_keys: Sequence[str]) -> None:
        self.registry = registry
        named = (
            frozenset(self._keys(_NAMES))
            | frozenset(_scenario_keys(scenario_keys))
            | frozenset(_KINDS)
        )
        self.identities = (
            frozenset(self._keys(_IDENTITIES))
            | frozenset(_GROUPS)
            | frozenset(prefix + langgraph.THREAD for prefix in _GRAPHS)
        )
        self.names = named | frozenset(
            prefix + key for prefix in _GRAPHS for key in _LANGGRAPH if key != langgraph.THREAD
        )
        """Keys of names and numbers by which scoring compares and files. What they hold is
        nobody's.
        """
        self.needed = self.names | self.identities
        """Keys of all that scoring needs but messages, arguments, results and answers."""
        self.members = self._members(scenario_keys)
        """Parts of JSON attributes that are needed: paths by key."""
        self.outputs = tuple(
            place for place in self._places(("output_messages",)) if not isinstance(place, InEvent)
        )
        """Where the messages live that models gave back."""

    def _keys(self, fields: Sequence[str]) -> Iterator[str]:
        for place in self._places(fields):
            if isinstance(place, str):
                yield place
            elif isinstance(place, Member) and not place.path:
                yield place.key

    def _places(self, fields: Sequence[str]) -> FieldPaths:
        found: dict[Place, None] = {}
        for dialect in self.registry.dialects:
            for field in fields:
                found.update(dict.fromkeys(getattr(dialect.fields, field)))
        return tuple(found)

    def _members(self, scenario_keys: Sequence[str]) -> dict[str, tuple[Path, ...]]:
        members: dict[str, list[Path]] = defaultdict(list)
        told = [
            place
            for place in self._places((*_NAMES, *_IDENTITIES))
            if isinstance(place, Member) and place.path
        ]
        scenarios = [
            Member("metadata", (key,)) for key in (*_with_aliases(scenario_keys), *RUN_KEYS, TURN)
        ]
        for member in (*told, *_MEMBERS, *scenarios):
            members[member.key].append(member.path)
        return {
            key: tuple(dict.fromkeys(paths))
            for key, paths in members.items()
            if key not in self.needed
        }


def _scenario_keys(keys: Sequence[str]) -> Iterator[str]:
    yield from (*keys, *RUN_KEYS)
    yield from (wrapper + key for wrapper in WRAPPERS for key in _with_aliases(keys))


def _with_aliases(keys: Sequence[str]) -> tuple[str, ...]:
    return (*keys, *(key.replace(".", "_") for key in keys))
