"""Reads JSON that stands as text inside a document: the text comes in, its value goes out, or an
error that names the place of the text.
"""

from __future__ import annotations

import ast
import json
import re

from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, json_source
from pathgauge.scorers.types import Json

_PYTHON = re.compile(r"[\[{\s]*'")
"""How Python writes a list or an object with text in it, and pandas the cells of a CSV file."""


def read(document: Document, path: KeyPath, text: str) -> Json:
    """The value of the JSON text, or of the Python text, at `path`. Raises `ConfigError`."""
    try:
        return json_source.read(text, document.file).data
    except ConfigError as error:
        if _PYTHON.match(text):
            try:
                return json.loads(json.dumps(ast.literal_eval(text)))
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                pass
        problem = error.problems[0]
        place = f" (character {problem.position.column} of the text)" if problem.position else ""
        words = problem.text.replace("the end of the file", "the end of the text")
        raise ConfigError([document.problem((*path, *problem.path), words + place)]) from None
