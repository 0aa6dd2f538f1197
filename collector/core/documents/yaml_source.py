"""Parses YAML into `Document`s with positions.

Values have the types of YAML 1.2's core schema: `NO`, `on`, `12:30` and `2026-01-31` are text.
Repeated keys, tags, merge keys and recursive aliases are refused.

With an environment, `${env:VAR}`, `${VAR}` and `${env:VAR:-default}` are replaced as in the
OpenTelemetry Collector. Replacement happens inside one scalar, so a variable cannot add structure.
The type of a plain scalar is determined after the replacement. `$$` is a dollar sign.

libyaml parses ten times faster than PyYAML's own parser, but refuses some text that the latter
accepts, such as `[a:]`. So text that libyaml refuses is parsed again by PyYAML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import yaml

from pathgauge.collector.core.documents import (
    MAX_LEVELS,
    ConfigError,
    Document,
    KeyPath,
    Position,
    Problem,
    Problems,
    no_utf8,
)
from pathgauge.collector.core.documents.places import NO_KEY, Lines, Recorder, packed, unpacked
from pathgauge.collector.core.documents.yaml_scalars import converted, is_type, replaced, type_of
from pathgauge.scorers.types import Json

MAX_REPEATED = 500_000
"""Aliases that repeat more values are refused, because nested ones can expand exponentially."""
_CHARS_PER_VALUE = 100
"""Text of this length counts as another repeated value."""

FAST_PARSER: Any = getattr(yaml, "CBaseLoader", None)
"""The parser of libyaml; `None` if PyYAML was built without it."""

_TAG = "tag:yaml.org,2002:"


def read(text: str, file: str, environment: Mapping[str, str] | None = None) -> list[Document]:
    """Parse all documents of a YAML text. Without an `environment`, variables are not replaced.
    Raises `ConfigError`.
    """
    if FAST_PARSER is not None:
        try:
            return _read(yaml.parse(text, Loader=FAST_PARSER), file, environment)
        except (yaml.YAMLError, UnicodeEncodeError):
            pass
    try:
        return _read(yaml.parse(text, Loader=yaml.BaseLoader), file, environment)
    except ConfigError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = Position(mark.line + 1, mark.column + 1) if mark else None
        description = f"not YAML: {error.problem or error.context}"
        if environment is not None and mark and text[max(0, mark.index - 1) :].startswith("${"):
            description += '; between brackets, a variable needs quotes: {key: "${env:NAME}"}'
        problem = Problem(file, position, (), description)
    except yaml.reader.ReaderError as error:
        description = f"not YAML: found the character {chr(error.character)!r}"
        problem = Problem(file, Lines(text)(error.position), (), description)
    except (ValueError, OverflowError) as error:  # from an escape such as "\UFFFFFFFF"
        problem = Problem(file, None, (), f"not YAML: {error}")
    raise ConfigError([problem])


def _read(
    events: Iterator[Any], file: str, environment: Mapping[str, str] | None
) -> list[Document]:
    reader = _Reader(events, file, environment)
    documents: list[Document] = []
    with reader.problems:
        documents = list(reader.documents())
    reader.problems.report()
    return documents


class _Collection(NamedTuple):
    """A complete list or mapping with an anchor: its number in the recorder, and its data."""

    number: int
    data: Json


_Anchored: TypeAlias = _Collection | yaml.ScalarEvent | None
"""`None` is a collection that is not complete."""


class _Reader:
    """Converts the events of a parser into documents. It collects all problems."""

    def __init__(
        self, events: Iterator[Any], file: str, environment: Mapping[str, str] | None
    ) -> None:
        self.file, self.environment = file, environment
        self.problems = Problems()
        self._events = events
        self._recorder = Recorder()
        self._anchors: dict[str, _Anchored] = {}
        self._repeated = 0

    def documents(self) -> Iterator[Document]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._recorder, self._anchors = Recorder(), {}
                data = self._value(next(self._events), (), NO_KEY)
                yield Document(self.file, data, self._recorder.places(data, unpacked))

    def _value(self, event: Any, path: KeyPath, key: int) -> Json:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path, key)
        number = self._recorder.begin(_place(event), key)
        if len(path) > MAX_LEVELS:
            raise self._too_many_levels(event)
        if isinstance(event, yaml.ScalarEvent):
            self._set_anchor(event, event)
            return self._scalar(event, path)
        self._set_anchor(event, None)
        data = self._collection(event, path)
        self._recorder.end(number)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Collection(number, data)
        return data

    def _collection(self, event: Any, path: KeyPath) -> Json:
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if event.tag not in (None, "!", _TAG + ("seq" if is_list else "map")):
            self._refuse_tag(event, path)
        return self._list(path) if is_list else self._mapping(path)

    def _list(self, path: KeyPath) -> list[Json]:
        data: list[Json] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            data.append(self._value(event, (*path, len(data)), NO_KEY))
        return data

    def _mapping(self, path: KeyPath) -> dict[str, Json]:
        data: dict[str, Json] = {}
        places: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key, place = self._key(event, path), _place(event)
            if key is not None and key in places:
                line = unpacked(places[key]).line
                text = f"found the key again, expected it once (first in line {line})"
                self._refuse(event, (*path, key), text)
                key = None
            if key is None:
                self._value(next(self._events), path, NO_KEY)
            else:
                places[key] = place
                data[key] = self._value(next(self._events), (*path, key), place)
        return data

    def _key(self, event: Any, path: KeyPath) -> str | None:
        """The key that begins with an event; `None` if it was refused."""
        scalar: _Anchored = event
        if isinstance(event, yaml.AliasEvent):
            scalar = self._anchored(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._set_anchor(event, event)
        else:
            self._value(event, path, NO_KEY)
        if not isinstance(scalar, yaml.ScalarEvent):
            self._refuse(event, path, "found a list or a mapping as a key, expected text")
            return None
        key: str = scalar.value
        if scalar is not event:
            self._count_repeated(event, key)
        if key == "<<" and not scalar.style:
            text = "found a merge key, expected the keys themselves"
            self._refuse(event, (*path, key), text)
            return None
        if surrogate := no_utf8(key):
            text = f"found a key with {surrogate}, expected text that UTF-8 can hold"
            self._refuse(event, path, text)
            return None
        return key

    def _scalar(self, event: Any, path: KeyPath) -> Json:
        text, tag = event.value, event.tag
        kind = "str" if tag in (None, "!") else tag.removeprefix(_TAG)
        if not is_type(kind):
            return self._refuse_tag(event, path)
        if self.environment is not None and "$" in text:
            text = replaced(
                text, self.environment, lambda problem: self._refuse(event, path, problem)
            )
        if surrogate := no_utf8(text):
            problem = f"found text with {surrogate}, expected text that UTF-8 can hold"
            return self._refuse(event, path, problem)
        if event.implicit[0]:
            kind = type_of(text)
        try:
            return converted(kind, text)
        except ValueError as error:
            return self._refuse(event, path, str(error))

    def _alias(self, event: Any, path: KeyPath, key: int) -> Json:
        anchored = self._anchored(event)
        if isinstance(anchored, yaml.ScalarEvent):
            self._recorder.begin(_place(anchored), key)
            self._count_repeated(event, anchored.value)
            return self._scalar(anchored, path)
        if anchored is None:
            self._recorder.begin(_place(event), key)
            text = "found an alias of the value it is part of, expected a value"
            return self._refuse(event, path, text)
        self._recorder.repeat(anchored.number, key)
        return self._copy(event, anchored.data, len(path))

    def _copy(self, event: Any, value: Json, levels: int) -> Json:
        if levels > MAX_LEVELS:
            raise self._too_many_levels(event)
        if isinstance(value, dict):
            for key in value:
                self._count_repeated(event, key)
            return {key: self._copy(event, item, levels + 1) for key, item in value.items()}
        self._count_repeated(event, value)
        if isinstance(value, list):
            return [self._copy(event, item, levels + 1) for item in value]
        return value

    def _count_repeated(self, event: Any, value: Json) -> None:
        self._repeated += 1
        if isinstance(value, str):
            self._repeated += len(value) // _CHARS_PER_VALUE
        if self._repeated > MAX_REPEATED:
            text = f"found aliases that repeat more than {MAX_REPEATED} values, expected fewer"
            raise self._error(event, text)

    def _anchored(self, alias: Any) -> _Anchored:
        if alias.anchor not in self._anchors:
            raise self._error(alias, f"not YAML: found undefined alias {alias.anchor!r}")
        return self._anchors[alias.anchor]

    def _set_anchor(self, event: Any, anchored: _Anchored) -> None:
        if event.anchor is None:
            return
        if event.anchor in self._anchors:
            raise self._error(event, f"found the anchor {event.anchor!r} again, expected it once")
        self._anchors[event.anchor] = anchored

    def _too_many_levels(self, event: Any) -> ConfigError:
        return self._error(event, f"found more than {MAX_LEVELS} levels, expected fewer")

    def _error(self, event: Any, text: str) -> ConfigError:
        return ConfigError([Problem(self.file, unpacked(_place(event)), (), text)])

    def _refuse_tag(self, event: Any, path: KeyPath) -> None:
        text = f"found the tag {_show_tag(event.tag)}, expected plain YAML"
        self._refuse(event, path, text)

    def _refuse(self, event: Any, path: KeyPath, text: str) -> None:
        self.problems.add([Problem(self.file, unpacked(_place(event)), path, text)])


def _place(event: Any) -> int:
    return packed(event.start_mark.line, event.start_mark.column)


def _show_tag(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag
