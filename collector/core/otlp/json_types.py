"""Checks the JSON types of a record before protobuf's parser converts it.

That parser takes the characters of a text, and the items of a list, for the keys of an object: 7 s
of CPU time for a text of 15 MB. Its errors quote the wrong value once for each level around it, and
hold all of these texts: 700 MiB for a number of 15 MB in 45 arrays. So the wrong values that make
it slow are found first, and not quoted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

MAX_SCALAR_CHARACTERS = 1_000
"""Of a number, or of the name of an enumeration value, that is written as text."""
MAX_EXTENSION_CHARACTERS = 1_000
"""Of an unknown key in square brackets, which protobuf takes for the name of an extension."""

_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
"""All other values are numbers."""


class WrongTypeError(ValueError):
    """A value has another JSON type than its field."""


def json_type(value: object) -> str:
    """What JSON calls the type of a value, for messages to senders: most of them know no Python."""
    return "null" if value is None else _NAMES.get(type(value), "a number")


class _Field(NamedTuple):
    """What JSON may have for one field."""

    objects: Descriptor | None
    """The type of its objects; `None` for scalars."""
    is_repeated: bool


def check_types(record: dict[str, Any], kind: type[Message]) -> None:
    """Raises `WrongTypeError`. Empty texts and lists may stand for an empty object."""
    unread = [(record, kind.DESCRIPTOR)]
    while unread:
        source, descriptor = unread.pop()
        known = _fields(descriptor)
        for name, value in source.items():
            field = known.get(name)
            if field is None:
                _check_unknown(name)
            elif field.objects is None:
                _check_scalar(name, value)
            elif value is not None:
                inner = _listed(name, value) if field.is_repeated else (value,)
                unread += [(item, field.objects) for item in inner if _is_object(name, item)]


@cache
def _fields(kind: Descriptor) -> Mapping[str, _Field]:
    """The fields that are objects or scalars other than text, by both of their names. Text is
    never slow."""
    relevant = [field for field in kind.fields if field.type not in _TEXTS]
    return {
        name: _Field(field.message_type, field.is_repeated)
        for field in relevant
        for name in (field.name, field.json_name)
    }


def _is_object(name: str, value: Any) -> bool:
    if isinstance(value, dict):
        return True
    if value:
        raise WrongTypeError(f"{name}: found {json_type(value)}, expected an object")
    return False


def _listed(name: str, value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise WrongTypeError(f"{name}: found {json_type(value)}, expected an array")


def _check_scalar(name: str, value: Any) -> None:
    if isinstance(value, dict | list):
        raise WrongTypeError(f"{name}: found {json_type(value)}, expected a scalar")
    if isinstance(value, str) and len(value) > MAX_SCALAR_CHARACTERS:
        raise WrongTypeError(f"{name}: found {len(value):,} characters, expected a scalar")


def _check_unknown(name: str) -> None:
    if len(name) > MAX_EXTENSION_CHARACTERS and name[0] == "[":
        raise WrongTypeError(f"found a key of {len(name):,} characters in square brackets")
