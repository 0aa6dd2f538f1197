"""The docstrings of attributes, which Python does not keep: they are read from the source.

Reading them takes milliseconds a class. So nothing reads them while modules are imported.
"""

from __future__ import annotations

import ast
import inspect
from collections import ChainMap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import Any

from pydantic import BaseModel


def attribute_docstrings(kind: type) -> Mapping[str, str]:
    """The docstrings of the attributes of a class, those of its parents included, in one line each.
    Empty where there is no source.
    """
    return ChainMap(*map(_own_docstrings, kind.__mro__))


@cache
def _own_docstrings(owner: type) -> dict[str, str]:
    try:
        tree = ast.parse(dedent(inspect.getsource(owner)))
    except (OSError, TypeError):
        return {}
    texts: dict[str, str] = {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=docstring):
                text = inspect.cleandoc(ast.literal_eval(docstring))
                texts[name] = " ".join(text.split())
    return texts


def describe_properties(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Add the docstrings to the JSON schema of a model: for `ConfigDict(json_schema_extra=...)`.
    Unlike `use_attribute_docstrings` of pydantic, it reads them only when a schema is made.
    """
    texts = attribute_docstrings(model)
    for name, described in schema.get("properties", {}).items():
        if name in texts:
            described.setdefault("description", texts[name])
