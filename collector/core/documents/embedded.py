"""Parses JSON text inside a document, such as a cell of a CSV file."""

from __future__ import annotations

import ast
import json
import re

from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, json_source
from pathgauge.scorers.types import Json

MAX_LITERAL_CHARS = 131_072
"""Longer Python literals are refused: Python's parser needs 500 bytes for each character."""

_PYTHON = re.compile(r"[\[{\s]*'")
"""Python's notation of a list or dict that contains text, which pandas writes into CSV cells."""


def read(document: Document, path: KeyPath, text: str) -> Json:
    """Parse the JSON or Python literal at `path`. Raises `ConfigError` with the position of the
    text.
    """
    try:
        return json_source.read(text, document.file).data
    except ConfigError as error:
        if len(text) <= MAX_LITERAL_CHARS and _PYTHON.match(text):
            try:
                return json.loads(json.dumps(ast.literal_eval(text)))
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                pass
        problem = error.problems[0]
        message = problem.text.replace("the end of the file", "the end of the text")
        if problem.position:
            message += f" (character {problem.position.column} of the text)"
        raise ConfigError([document.problem((*path, *problem.path), message)]) from None
