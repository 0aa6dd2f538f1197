"""Parses YAML into `Document`s with positions.

Values have the types of YAML 1.2's core schema: `NO`, `on`, `12:30` and `2026-01-31` are text.
Repeated keys, tags, merge keys and recursive aliases are refused.

With an environment, `${env:VAR}`, `${VAR}` and `${env:VAR:-default}` are replaced as in the
OpenTelemetry Collector. Replacement happens inside one scalar, so a variable cannot add structure.
The type of a plain scalar is determined after the replacement. `$$` is a dollar sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import yaml

from pathgauge.collector.core.documents import (
    MAX_LEVELS,
    ConfigError,
    Document,
    KeyPath,
    Position,
    Problem,
    no_utf8,
)
from pathgauge.scorers.types import Json

MAX_VALUES = 500_000
"""Documents with more values are refused, because nested aliases can expand exponentially."""

_TAG = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[str, Callable[[str], Json]]] = {
    "null": (r"~|null|Null|NULL|", lambda text: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    "int": (
        r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
        lambda text: int(text, 0 if text[:2] in ("0o", "0x") else 10),
    ),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        lambda text: float(re.sub(r"\.(?=[inIN])", "", text)),
    ),
    "str": (r"(?s:.*)", str),
}
_PATTERNS = {kind: re.compile(rf"(?:{pattern})\Z") for kind, (pattern, _) in _TYPES.items()}

_REFERENCE = re.compile(r"\$\$|\$\{(?P<body>[^{}]*)\}|\$\{")
_BODY = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


class _Loader(yaml.BaseLoader):
    """PyYAML's loader with the types of YAML 1.2's core schema."""


for _kind, _pattern in _PATTERNS.items():
    _Loader.add_implicit_resolver(_TAG + _kind, _pattern, None)


def read(text: str, file: str, environment: Mapping[str, str] | None = None) -> list[Document]:
    """Parse all documents of a YAML text. Without an `environment`, variables are not replaced.
    Raises `ConfigError`.
    """
    try:
        nodes = list(yaml.compose_all(text, Loader=_Loader))
        return [_document(node, file, environment) for node in nodes]
    except ConfigError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = Position(mark.line + 1, mark.column + 1) if mark else None
        problem = Problem(file, position, (), f"not YAML: {error.problem or error.context}")
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        text = f"not YAML: found the character {chr(error.character)!r}"
        problem = Problem(file, position, (), text)
    except RecursionError:
        problem = Problem(file, None, (), f"found more than {MAX_LEVELS} levels, expected fewer")
    except (ValueError, OverflowError) as error:  # from an escape such as "\UFFFFFFFF"
        problem = Problem(file, None, (), f"not YAML: {error}")
    raise ConfigError([problem])


def _document(node: yaml.Node | None, file: str, environment: Mapping[str, str] | None) -> Document:
    reader = _Reader(file, environment)
    data = None if node is None else reader.value(node, ())
    if reader.problems:
        raise ConfigError(reader.problems)
    return Document(file, data, reader.values, reader.keys)


class _Reader:
    """Converts composed nodes into plain data. It collects all problems of the document."""

    def __init__(self, file: str, environment: Mapping[str, str] | None) -> None:
        self.file, self.environment = file, environment
        self.values: dict[KeyPath, Position] = {}
        self.keys: dict[KeyPath, Position] = {}
        self.problems: list[Problem] = []
        self._open: set[yaml.Node] = set()

    def value(self, node: yaml.Node, path: KeyPath) -> Json:
        self.values[path] = _position(node)
        if len(self.values) > MAX_VALUES:
            raise self._too_large(node, f"found more than {MAX_VALUES} values, expected fewer")
        if len(path) > MAX_LEVELS:
            raise self._too_large(node, f"found more than {MAX_LEVELS} levels, expected fewer")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node in self._open:
            text = "found an alias of the value it is part of, expected a value"
            return self._refuse(node, path, text)
        self._open.add(node)
        data = self._collection(node, path)
        self._open.discard(node)
        return data

    def _collection(self, node: yaml.Node, path: KeyPath) -> Json:
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, path)
        return self._refuse_tag(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Json]:
        data: dict[str, Json] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(key_node, path, "found a list or a mapping as a key, expected text")
            elif key == "<<" and not key_node.style:
                text = "found a merge key, expected the keys themselves"
                self._refuse(key_node, (*path, key), text)
            elif surrogate := no_utf8(key):
                text = f"found a key with {surrogate}, expected text that UTF-8 can hold"
                self._refuse(key_node, path, text)
            elif key in data:
                first = self.keys[*path, key].line
                text = f"found the key again, expected it once (first in line {first})"
                self._refuse(key_node, (*path, key), text)
            else:
                self.keys[*path, key] = _position(key_node)
                data[key] = self.value(value_node, (*path, key))
        return data

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Json:
        kind = node.tag.removeprefix(_TAG)
        if kind not in _TYPES:
            return self._refuse_tag(node, path)
        text = node.value
        if self.environment is not None and "$" in text:
            text = self._substitute(node, path, self.environment)
            kind = "str" if node.style else _resolve(text)
        if surrogate := no_utf8(text):
            problem = f"found text with {surrogate}, expected text that UTF-8 can hold"
            return self._refuse(node, path, problem)
        if not _PATTERNS[kind].match(text):
            return self._refuse(node, path, f"found {text!r}, expected {_show_tag(_TAG + kind)}")
        try:
            return _TYPES[kind][1](text)
        except ValueError:
            problem = "found a number with thousands of digits, expected a shorter one"
            return self._refuse(node, path, problem)

    def _substitute(
        self, node: yaml.ScalarNode, path: KeyPath, environment: Mapping[str, str]
    ) -> str:
        def replace(match: re.Match[str]) -> str:
            if match[0] == "$$":
                return "$"
            body = _BODY.fullmatch(match["body"] or "")
            if body is None:
                text = (
                    f"found {match[0]!r}, expected ${{env:NAME}} or ${{env:NAME:-default}} ($$ is a"
                    " dollar sign)"
                )
                self._refuse(node, path, text)
                return ""
            name, default = body["name"], body["default"]
            value: str | None = environment.get(name, default)
            if value is None:
                text = f"found {match[0]}, expected the environment variable {name} to be set"
                self._refuse(node, path, text)
            return value or ""

        return _REFERENCE.sub(replace, node.value)

    def _too_large(self, node: yaml.Node, text: str) -> ConfigError:
        return ConfigError([Problem(self.file, _position(node), (), text)])

    def _refuse_tag(self, node: yaml.Node, path: KeyPath) -> None:
        text = f"found the tag {_show_tag(node.tag)}, expected plain YAML"
        self._refuse(node, path, text)

    def _refuse(self, node: yaml.Node, path: KeyPath, text: str) -> None:
        self.problems.append(Problem(self.file, _position(node), path, text))


def _resolve(text: str) -> str:
    """The core schema's type of a plain scalar."""
    return next(kind for kind, pattern in _PATTERNS.items() if pattern.match(text))


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _show_tag(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag
