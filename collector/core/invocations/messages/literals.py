"""Reads text that may be a Python `repr`, in time proportional to its length.

Only literals are read, and what objects write: calls such as `Message(role=<Role.USER: 'user'>)`,
and the fields of pydantic models, `role='user' content='hi'`. Nothing is executed. What `repr`
never writes is refused: f-strings, operators, comments, complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pathgauge.collector.core.invocations.messages.literal_tokens import (
    number_value,
    string_value,
    tokens,
)

MAX_LITERAL_CHARACTERS = 2**17
"""Longer text is not read."""

MAX_LEVELS = 150
"""Brackets inside brackets, here and in JSON. Text that is nested deeper is not decoded, so that
code that walks a value can recurse, and what is stored can be read: pydantic reads 200 levels, of
which invocations and evidence need some.
"""

MAX_COLLIDING_KEYS = 256
"""Bound on the keys of a dict, and members of a set, whose hashes a sender can make equal: adding
them takes quadratic time.
"""
_MAX_SMALL = 2**60
"""Smaller integers have different hashes."""

_CONSTANTS = {"True": True, "False": False, "None": None}
_ENUM = "<"
_CLOSING = {"[": "]", "{": "}", "(": ")", _ENUM: ">"}


class Name(NamedTuple):
    """A name other than a constant, `nan` or `Role.USER`, or an object that shows no value,
    `<function f at 0x7f>`.
    """

    name: str


class Call(NamedTuple):
    """A call, which is how objects write themselves."""

    name: str
    positional: Sequence[Any]
    keywords: Mapping[str, Any]


def literal(text: str) -> Any:
    """The value of a literal. Values with commas between them are a tuple. Raises `ValueError`."""
    return _Reader(_empty_set, with_names=False).read(text)


def call(text: str) -> Call:
    """A call whose arguments are literals, names and calls. Raises `ValueError`."""
    value = _Reader(Call, with_names=True).read(text)
    if not isinstance(value, Call):
        raise ValueError(f"found a {type(value).__name__}, expected a call")
    return value


def fields(text: str) -> Mapping[str, Any]:
    """The fields of a pydantic model as its `str` writes them. Raises `ValueError`."""
    whole = _Reader(Call, with_names=True, is_model=True).read(text)
    if not isinstance(whole, Call) or whole.positional:
        raise ValueError("found a value without a name, expected fields")
    return whole.keywords


def _empty_set(name: str, positional: Sequence[Any], keywords: Mapping[str, Any]) -> set[Any]:
    """The only call in literals, because `{}` is a dict."""
    if name == "set" and not positional and not keywords:
        return set()
    raise ValueError(f"found a call of {name}")


@dataclass(slots=True)
class _Bracket:
    """An open bracket with what it contains so far."""

    opening: str = ""
    name: str | None = None
    """Of the function, if the bracket has the arguments of a call."""
    keys: list[Any] = field(default_factory=list)
    """Keys of a dict, or names of the keyword arguments of a call."""
    items: list[Any] = field(default_factory=list)
    has_key: bool = False
    """Whether the next item belongs to the last key."""
    has_comma: bool = False

    def add_key(self, key: Any) -> None:
        if self.has_key or (self.opening == "{" and len(self.keys) < len(self.items)):
            raise ValueError("found a key at a wrong place")
        self.keys.append(key)
        self.has_key = True

    def add(self, item: Any) -> None:
        if self.keys and not self.has_key:
            raise ValueError("found a value without a key")
        self.items.append(item)
        self.has_key = False


class _Reader:
    """Reads one text, token by token. A stack instead of recursion lets text be nested deeply."""

    def __init__(
        self,
        make_call: Callable[[str, Sequence[Any], Mapping[str, Any]], Any],
        *,
        with_names: bool,
        is_model: bool = False,
    ) -> None:
        """`is_model`: the text consists of fields with spaces between them."""
        self._make_call = make_call
        self._with_names = with_names
        self._is_model = is_model
        self._open = [_Bracket(name="" if is_model else None)]
        self._value: Any = None
        self._is_complete = False
        """Whether `_value` is read but not added to its bracket yet."""
        self._steps: Mapping[str, Callable[[str], None]] = {
            "string": lambda token: self._complete(string_value(token)),
            "number": lambda token: self._complete(number_value(token)),
            "ellipsis": lambda _: self._complete(...),
            "name": self._name,
            "enum": lambda _: self._opening(_ENUM),
            "opaque": lambda token: self._complete(Name(token)),
            "opening": self._opening,
            "closing": self._closing,
            "comma": self._comma,
            "colon": self._colon,
            "equals": self._equals,
            "end": self._end,
        }

    def read(self, text: str) -> Any:
        """The value of the whole text. Raises `ValueError`."""
        if len(text) > MAX_LITERAL_CHARACTERS:
            found = f"found {len(text):,} characters"
            raise ValueError(f"{found}, expected at most {MAX_LITERAL_CHARACTERS:,}")
        if b"\0" in text.encode():  # raises for half a surrogate pair
            raise ValueError("found a null character")
        for kind, token in tokens(text):
            self._steps[kind](token)
        return self._value

    def _complete(self, value: Any) -> None:
        if self._is_complete:
            raise ValueError("found two values without a comma")
        self._value, self._is_complete = value, True

    def _take(self) -> Any:
        if not self._is_complete:
            raise ValueError("found no value before a comma, colon or bracket")
        if isinstance(self._value, Name) and not self._with_names:
            raise ValueError(f"found the name {self._value.name}")
        self._is_complete = False
        return self._value

    def _name(self, token: str) -> None:
        if self._is_model and self._is_complete and len(self._open) == 1:
            self._comma("")
        self._complete(_CONSTANTS[token] if token in _CONSTANTS else Name(token))

    def _opening(self, token: str) -> None:
        if token == _ENUM and not self._with_names:
            raise ValueError("found a member of an enumeration")
        if len(self._open) > MAX_LEVELS:
            raise ValueError(f"found more than {MAX_LEVELS} brackets inside each other")
        bracket = _Bracket(token)
        if self._is_complete and isinstance(self._value, Name) and token == "(":
            bracket.name, self._is_complete = self._value.name, False
        elif self._is_complete:
            raise ValueError("found two values without a comma")
        self._open.append(bracket)

    def _closing(self, token: str) -> None:
        bracket = self._open.pop()
        if _CLOSING.get(bracket.opening) != token:
            raise ValueError(f"found {token} in {bracket.opening or 'no bracket'}")
        if self._is_complete or bracket.has_key:
            bracket.add(self._take())
        self._complete(self._closed(bracket))

    def _closed(self, bracket: _Bracket) -> Any:
        keys, items = bracket.keys, bracket.items
        if bracket.name is not None:
            positional = len(items) - len(keys)
            keywords = dict(zip(keys, items[positional:], strict=True))
            return self._make_call(bracket.name, items[:positional], keywords)
        if bracket.opening == _ENUM:
            return _only(bracket)
        if bracket.opening == "[":
            return items
        if bracket.opening == "(":
            return _tuple(bracket)
        if keys or not items:
            return dict(zip(_hashable(keys), items, strict=True))
        return set(_hashable(items))

    def _comma(self, _: str) -> None:
        self._open[-1].add(self._take())
        self._open[-1].has_comma = True

    def _colon(self, _: str) -> None:
        if self._open[-1].opening != "{":
            raise ValueError("found a colon outside of a dict")
        self._open[-1].add_key(self._take())

    def _equals(self, _: str) -> None:
        keyword = self._take()
        if self._open[-1].name is None or not isinstance(keyword, Name):
            raise ValueError("found = outside of a call")
        self._open[-1].add_key(keyword.name)

    def _end(self, _: str) -> None:
        if len(self._open) > 1:
            raise ValueError("found no end of a bracket")
        [whole] = self._open
        if self._is_complete:
            whole.add(self._take())
        if not whole.items:
            raise ValueError("found nothing")
        self._value = self._closed(whole) if self._is_model else _tuple(whole)


def _only(bracket: _Bracket) -> Any:
    """The value of a member of an enumeration."""
    if len(bracket.items) != 1 or bracket.has_comma:
        raise ValueError(f"found {len(bracket.items):,} values of a member of an enumeration")
    return bracket.items[0]


def _tuple(bracket: _Bracket) -> Any:
    """A tuple, or a value in brackets."""
    if len(bracket.items) == 1 and not bracket.has_comma:
        return bracket.items[0]
    return tuple(bracket.items)


def _hashable(keys: list[Any]) -> list[Any]:
    """The same keys. Raises `ValueError` if they cannot be hashed, or not in linear time."""
    colliding = [key for key in keys if not _has_own_hash(key)]
    if len(colliding) > MAX_COLLIDING_KEYS:
        raise ValueError(f"found {len(colliding):,} keys that are tuples or large integers")
    try:
        for key in colliding:
            hash(key)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return keys


def _has_own_hash(key: Any) -> bool:
    """Whether few keys like this one can have the same hash."""
    if isinstance(key, int):
        return -_MAX_SMALL < key < _MAX_SMALL
    return isinstance(key, str | bytes | float)
