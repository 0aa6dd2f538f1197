"""Finds the scenario id of an invocation, its turn and its test run.

The first source with a scenario id decides: the entry span, its ancestors (nearest first), its
descendants, their log records, the W3C `tracestate` member `pathgauge`, metadata in the wrapping of
a framework, the resource. Two different ids in one source are a conflict, which is reported and
never resolved by a guess.

The member is `pathgauge=c:<scenario id>;t:<turn>;r:<run id>` with percent-encoded values.
Everything except the scenario id is optional.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.dialects.vocabulary import has_mark
from pathgauge.collector.core.invocations.messages.values import as_id, as_int, as_object, decoded
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.key_prefixes import KeyPrefixes
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
    "genkit:metadata:",
    "mastra.metadata.",
    "metadata.",
    "lmnr.association.properties.metadata.",
    "langwatch.langgraph.",
)
"""Prefixes under which frameworks write the metadata of their users."""

_JSON_METADATA = "metadata"
_METADATA = KeyPrefixes((*WRAPPERS, _JSON_METADATA))

_MEMBER = b"pathgauge="

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Found:
    """The scenario id. `conflict`: a source has several."""

    scenario_id: str | None = None
    conflict: bool = False


def find(
    entry: Node, members: Sequence[Node], logs: Sequence[LogRecord], keys: tuple[str, ...]
) -> Found:
    """Search all sources in their order."""
    for source in _sources(entry, members, logs, keys):
        ids = set(source)
        if ids:
            if len(ids) == 1:
                return Found(ids.pop())
            return Found(conflict=True)
    return Found()


def turn_and_run(
    scenario_id: str | None, spans: Sequence[Span], members: Iterable[Node]
) -> tuple[int | None, str | None]:
    """The turn and the test run: from the first of the `spans` that has them, or the resource,
    otherwise from the `tracestate` of the scenario.

    `None` if the `tracestate` has several.
    """
    turn = as_int(first(spans, (TURN,)))
    run = as_id(_unquoted(first(spans, RUN_KEYS))) or next(
        _ids([spans[0].resource.attributes], RUN_KEYS), None
    )
    if scenario_id is None or (turn is not None and run is not None):
        return turn, run
    turns, runs = _in_tracestates(scenario_id, members)
    if turn is None:
        turn = _only(turns)
    if run is None:
        run = _only(runs)
    return turn, run


def _in_tracestates(scenario_id: str, members: Iterable[Node]) -> tuple[set[int], set[str]]:
    """The turns and the test runs in all `tracestate` members of the scenario."""
    turns: set[int] = set()
    runs: set[str] = set()
    for fields in _tracestates(members):
        if ("c", scenario_id) not in fields:
            continue
        for name, text in fields:
            turn = as_int(text) if name == "t" else None
            if turn is not None:
                turns.add(turn)
            run = as_id(text) if name == "r" else None
            if run is not None:
                runs.add(run)
    return turns, runs


def _only(values: set[_T]) -> _T | None:
    if len(values) == 1:
        return values.pop()
    return None


def _sources(
    entry: Node, members: Sequence[Node], logs: Sequence[LogRecord], keys: tuple[str, ...]
) -> Iterator[Iterable[str]]:
    """The ids in each source."""
    above = list(entry.ancestors())
    yield _ids([entry.span.attributes], keys)
    for node in above:
        yield _ids([node.span.attributes], keys)
    below = [node.span for node in members if node is not entry]
    yield _ids((span.attributes for span in below if _searched(keys).may_be_in(span.raw)), keys)
    yield _ids((log.attributes for log in logs), keys)
    yield _scenarios_in_tracestates(members)
    own = (span for node in (entry, *above) for span in node.spans)
    yield _ids((_metadata(span, keys) for span in own), keys)
    yield _ids(_metadata_of(below, keys), keys)
    yield _ids([entry.span.resource.attributes], keys)


def _metadata_of(spans: Iterable[Span], keys: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The metadata of spans that may have one of the keys in it. Others are not decoded."""
    names = [name.encode() for key in keys for name in (key, _alias(key))]
    for span in spans:
        if _METADATA.may_be_in(span.raw) and has_mark(span.raw, names):
            yield _metadata(span, keys)


@lru_cache
def _searched(keys: tuple[str, ...]) -> KeyPrefixes:
    return KeyPrefixes(keys)


def _ids(sources: Iterable[Mapping[str, Any]], keys: tuple[str, ...]) -> Iterator[str]:
    """The id in each source, under the first key with a value."""
    for attributes in sources:
        for key in keys:
            value = as_id(_unquoted(attributes.get(key)))
            if value is not None:
                yield value
                break


def _unquoted(value: Any) -> Any:
    """The value without JSON quotes, which MLflow adds to every attribute."""
    if isinstance(value, str) and value.startswith('"'):
        return decoded(value)
    return value


def _scenarios_in_tracestates(members: Iterable[Node]) -> Iterator[str]:
    for fields in _tracestates(members):
        for name, text in fields:
            if name == "c" and as_id(text) is not None:
                yield text


def _tracestates(members: Iterable[Node]) -> Iterator[list[tuple[str, str]]]:
    """The decoded fields of each distinct `tracestate` member `pathgauge`."""
    states = {node.span.trace_state for node in members if _MEMBER in node.span.raw}
    for state in states:
        for member in state.split(","):
            name, _, value = member.strip().partition("=")
            if name == "pathgauge":
                parts = (field.partition(":") for field in value.split(";"))
                yield [(key, unquote(text)) for key, _, text in parts]


def _metadata(span: Span, keys: tuple[str, ...]) -> dict[str, Any]:
    """User metadata by key. Keys may have underscores instead of dots, values may be JSON."""
    attributes = span.attributes
    metadata = dict(as_object(decoded(attributes.get(_JSON_METADATA))) or {})
    for key, value in attributes.items():
        for wrapper in WRAPPERS:
            if key.startswith(wrapper):
                metadata[key[len(wrapper) :]] = decoded(value)
    for key in keys:
        alias = _alias(key)
        if alias in metadata and key not in metadata:
            metadata[key] = metadata[alias]
    return metadata


def _alias(key: str) -> str:
    return key.replace(".", "_")
