"""Results of tools inside the objects in which frameworks carry them, written as text or as a pair.

Several instrumentations write the same objects, so that they are recognised by their format in
every trace: the tool message of LangChain and the `FunctionExecutionResult` of Agno as `str()`
gives them, the parts of that message in an object, AG2's pair of whether a tool succeeded and the
message about it, and the response of AgentScope, as an object or in the `repr` of it. Of a text
that is such an object but cannot be read, the result is unknown.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pathgauge.collector.core.invocations.messages.literals import call, fields
from pathgauge.collector.core.invocations.messages.reprs import is_written_object
from pathgauge.collector.core.invocations.messages.values import as_text, decoded
from pathgauge.collector.core.reading_budget import spend
from pathgauge.scorers.types import Json

_SUCCESS = "success"
_STATES = (_SUCCESS, "error", "interrupted", "denied")
_MESSAGE, _CALL_ID = "content=", " tool_call_id='"
_EXECUTION, _RESPONSE = "status='", "ToolResponse(content=["
_EXECUTION_RESULT = re.compile(
    r"status='(?:success|failure)' result=(?P<result>.*)"
    r" error=(?P<error>None|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r" updated_session_state=",
    re.DOTALL,
)
_OBJECT = re.compile(r"<[^\n]{1,300} object [^\n]{0,300}at 0x[0-9a-fA-F]{1,16}>")


class Result(NamedTuple):
    """The result of a tool, and the error that the tool or its framework reports."""

    value: Json = None
    error: str | None = None


def is_object(item: Any) -> bool:
    """Whether a text is the `repr` of a Python object that shows only its address."""
    return isinstance(item, str) and item[:1] == "<" and _OBJECT.fullmatch(item) is not None


def written_result(value: Any) -> Result | None:
    """The result inside an object of a framework; `None` for other values."""
    match value:
        case str() if value.startswith(_MESSAGE) and _CALL_ID in value:
            return _of_message(value)
        case str() if value.startswith(_EXECUTION):
            return _of_execution(value)
        case str() if value.startswith(_RESPONSE):
            return _of_response(value)
        case [bool() as succeeded, {"role": "function", "content": content}]:
            return Result(decoded(content), None if succeeded else as_text(content))
        case {"content": [*blocks], "state": str() as state, "metadata": _, "id": _}:
            return _of_blocks(blocks, state)
        case {"name": _, "tool_call_id": _, "content": content, **others} if not others:
            return Result(decoded(content))
        case {"tool_messages": [str() as message, *_]} if is_written_object(message):
            return Result()  # a round of calls: the messages tell which result is whose
    return None


def _of_blocks(blocks: list[Any], state: str) -> Result | None:
    """The result of a tool of AgentScope. Only the state tells whether it failed."""
    if state not in _STATES or not all(isinstance(block, dict) for block in blocks):
        return None
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    text = "\n".join(texts)
    error = None if state == _SUCCESS else text or state
    return Result(decoded(text) if len(texts) == len(blocks) else None, error)


def _of_response(text: str) -> Result:
    """The result in the `repr` of a response, which has no state: whether the tool failed is not
    known.
    """
    spend(len(text))
    try:
        blocks = call(text).keywords.get("content")
    except ValueError:
        return Result()
    return (_of_blocks(blocks, _SUCCESS) if isinstance(blocks, list) else None) or Result()


def _of_message(text: str) -> Result:
    spend(len(text))
    try:
        members = fields(text)
    except ValueError:
        return Result()
    content = decoded(members.get("content"))
    error = as_text(content) or "error" if members.get("status") == "error" else None
    return Result(content, error)


def _of_execution(text: str) -> Result | None:
    """The result of a generator is an object without its content: later prompts have the result."""
    match = _EXECUTION_RESULT.match(text)
    if match is None:
        return None
    error = _literal(match["error"])
    return Result(_literal(match["result"]), as_text(error) if error else None)


def _literal(text: str) -> Any:
    """The value of a `repr`; other text unchanged; `None` for an object without its content."""
    if text == "None" or is_object(text):
        return None
    if text[:1] in ("'", '"'):
        # Only in a list is the `repr` of a text known to be one.
        listed = decoded(f"[{text}]")
        return decoded(listed[0]) if isinstance(listed, list) and len(listed) == 1 else text
    return decoded(text)
