"""Reads stored JSON that a later version of pathgauge may have written, before a downgrade or
beside this one.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import ValidationError

from pathgauge.collector.core.documents.adapters import adapter

T = TypeVar("T")


def read_known(kind: type[T], text: bytes | str) -> T:
    """The `kind` that the document describes. Values that this version does not know, such as a
    flag or a category, are left out. Raises `ValueError` if an incompatible version wrote it.
    """
    try:
        return adapter(kind).validate_json(text)
    except ValidationError as error:
        try:
            known = _without_unknown(json.loads(text), error)
            return adapter(kind).validate_json(json.dumps(known))
        except (ValidationError, LookupError, TypeError):
            raise error from None


def _without_unknown(document: Any, error: ValidationError) -> Any:
    """The document without the values that are none of the known ones. Raises if something else is
    wrong, or if they are not optional.
    """
    unknown = [one["loc"] for one in error.errors() if one["type"] == "literal_error"]
    for *path, last in reversed(unknown):  # from the end, because the items of lists move up
        parent = document
        for key in path:
            parent = parent[key]
        if path[-1:] == ["failure"]:  # a failure without its category says nothing
            del document["failure"]
        else:
            del parent[last]
    return document
