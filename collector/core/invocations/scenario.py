"""Finds the scenario of an invocation, the turn and the test run: its place in the tree comes in,
ids go out, or that they contradict.

Places, the first that holds a scenario id decides: the anchor, its ancestors (nearest first), its
descendants, their log records, the W3C `tracestate` member `pathgauge`, metadata in a framework's
own wrapping, the resource. Two different ids in one place are a conflict, which is reported and
never resolved by a guess.

The member is `pathgauge=c:<scenario id>;t:<turn>;r:<run id>`, its values percent-encoded, all but
the scenario id left out where not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.messages.values import as_id, as_int, as_object, decoded
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.spans import LogRecord, Span

TURN = "pathgauge.turn"
RUN_KEYS = ("test.suite.run.id", "pathgauge.run.id")
DEFAULT_KEYS = (
    "pathgauge.scenario.id",
    "test.case.id",
    "eval.scenario.id",
    "scenario.id",
    "agentevals.eval.case.id",
)

WRAPPERS = (
    "langfuse.trace.metadata.",
    "langfuse.observation.metadata.",
    "langsmith.metadata.",
    "traceloop.association.properties.",
    "ai.telemetry.metadata.",
    "ai.settings.context.",
    "mlflow.traceTag.",
)
"""Prefixes under which frameworks write the metadata that their users gave."""

_MEMBER = b"pathgauge="

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Found:
    """The scenario id; `conflict` says that a place held several."""

    scenario_id: str | None = None
    conflict: bool = False


def find(
    entry_agent: Node, members: Sequence[Node], logs: Sequence[LogRecord], keys: tuple[str, ...]
) -> Found:
    """Look through all places in their order."""
    for place in _places(entry_agent, members, logs, keys):
        ids = set(place)
        if ids:
            return Found(ids.pop()) if len(ids) == 1 else Found(conflict=True)
    return Found()


def turn_and_run(
    scenario_id: str | None, spans: Sequence[Span], members: Iterable[Node]
) -> tuple[int | None, str | None]:
    """The turn and the test run: what the first of the `spans` or their resource says, else what
    the `tracestate` states for the scenario.

    `None` also where the `tracestate` states several.
    """
    turn = as_int(first(spans, (TURN,)))
    run = as_id(_unquoted(first(spans, RUN_KEYS))) or next(
        _ids([spans[0].resource.attributes], RUN_KEYS), None
    )
    if scenario_id is None or (turn is not None and run is not None):
        return turn, run
    stated = [
        field
        for fields in _tracestates(members)
        if ("c", scenario_id) in fields
        for field in fields
    ]
    turns = {
        number for name, text in stated if name == "t" and (number := as_int(text)) is not None
    }
    runs = {found for name, text in stated if name == "r" and (found := as_id(text)) is not None}
    return _only(turns) if turn is None else turn, _only(runs) if run is None else run


def _only(values: set[_T]) -> _T | None:
    return values.pop() if len(values) == 1 else None


def _places(
    entry_agent: Node, members: Sequence[Node], logs: Sequence[LogRecord], keys: tuple[str, ...]
) -> Iterator[Iterable[str]]:
    above = list(_above(entry_agent))
    yield _ids([entry_agent.span.attributes], keys)
    for node in above:
        yield _ids([node.span.attributes], keys)
    byte_marks = tuple(key.encode() for key in keys)
    below = [node.span for node in members if node is not entry_agent]
    yield _ids(
        (span.attributes for span in below if any(mark in span.raw for mark in byte_marks)), keys
    )
    yield _ids((log.attributes for log in logs), keys)
    yield (
        text
        for fields in _tracestates(members)
        for name, text in fields
        if name == "c" and as_id(text) is not None
    )
    byte_marks += tuple(key.replace(".", "_").encode() for key in keys)
    yield _ids(
        (_metadata(span, keys) for node in (entry_agent, *above) for span in node.spans), keys
    )
    yield _ids(
        (_metadata(span, keys) for span in below if any(mark in span.raw for mark in byte_marks)),
        keys,
    )
    yield _ids([entry_agent.span.resource.attributes], keys)


def _above(entry_agent: Node) -> Iterator[Node]:
    node = entry_agent.parent
    while node is not None:
        yield node
        node = node.parent


def _ids(places: Iterable[Mapping[str, Any]], keys: tuple[str, ...]) -> Iterator[str]:
    """The id of each place, under the first key that it has."""
    for attributes in places:
        found = next(
            (value for key in keys if (value := as_id(_unquoted(attributes.get(key)))) is not None),
            None,
        )
        if found is not None:
            yield found


def _unquoted(value: Any) -> Any:
    """The value without the JSON encoding that MLflow gives to every attribute."""
    return decoded(value) if isinstance(value, str) and value.startswith('"') else value


def _tracestates(members: Iterable[Node]) -> Iterator[list[tuple[str, str]]]:
    """The fields of each different member `pathgauge`, decoded."""
    states = {node.span.trace_state for node in members if _MEMBER in node.span.raw}
    for state in states:
        for member in state.split(","):
            name, _, value = member.strip().partition("=")
            if name == "pathgauge":
                parts = (field.partition(":") for field in value.split(";"))
                yield [(key, unquote(text)) for key, _, text in parts]


def _metadata(span: Span, keys: tuple[str, ...]) -> dict[str, Any]:
    """User metadata by key; its keys may have underscores for dots, its values may be JSON."""
    attributes = span.attributes
    members = dict(as_object(decoded(attributes.get("metadata"))) or {})
    for key, value in attributes.items():
        for wrapper in WRAPPERS:
            if key.startswith(wrapper):
                members[key[len(wrapper) :]] = decoded(value)
    return members | {
        key: members[alias]
        for key in keys
        if (alias := key.replace(".", "_")) in members and key not in members
    }
