"""Results and failures of tool calls, in whatever form the telemetry has them."""

from typing import Any

import pytest

from pathgauge.scorers.matching.calls import as_object, failed
from pathgauge.scorers.types import ToolCall


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        (' {"a": 1}\n', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('"\\"{}\\""', {}),
        ("[1]", {}),
        ("null", {}),
        ("{cut", {}),
        ('"{cut"', {}),
        ("", {}),
        ("done", {}),
        ('{"a":' * 100_000, {}),
        ([{"a": 1}], {}),
        ([{"type": "text", "text": '{"a": 1}'}], {"a": 1}),
        ('[{"type": "text", "text": "{}"}]', {}),
        ([{"type": "text", "text": "done"}], {}),
        ([{"type": "text", "text": "{}"}, {"type": "text", "text": "{}"}], {}),
        (None, {}),
        (1, {}),
        (True, {}),
    ],
)
def test_an_object_is_read_from_whatever_holds_it(value: Any, expected: dict[str, Any]) -> None:
    assert as_object(value) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ToolCall("a"), False),
        (ToolCall("a", error="boom"), True),
        (ToolCall("a", error=""), True),
        (ToolCall("a", result={"error": "boom"}), True),
        (ToolCall("a", result='{"error": {"code": 404}}'), True),
        (ToolCall("a", result={"error": None}), False),
        (ToolCall("a", result={"error": ""}), False),
        (ToolCall("a", result={"error": False}), False),
        (ToolCall("a", result="Error: boom"), False),
        (ToolCall("a", result={"isError": True, "content": []}), True),
        (ToolCall("a", result={"isError": False}), False),
    ],
)
def test_a_call_failed_when_the_telemetry_or_its_result_says_so(
    call: ToolCall, expected: bool
) -> None:
    assert failed(call) == expected
