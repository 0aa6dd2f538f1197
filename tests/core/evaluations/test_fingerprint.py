"""Two invocations have the same fingerprint if their content is the same, however long it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathgauge.collector.core.evaluations.fingerprint import fingerprint
from pathgauge.scorers.types import Invocation, ToolCall

LONG = "refund " * 1_000
INVOCATION = Invocation(
    "1" * 32, "2" * 16, "genai", user_input=LONG, tool_calls=(ToolCall("refund", {"id": LONG}),)
)


def test_equal_content_has_the_same_fingerprint() -> None:
    equal = replace(INVOCATION, tool_calls=(ToolCall("refund", {"id": "refund " * 1_000}),))
    assert fingerprint(equal) == fingerprint(INVOCATION)


@pytest.mark.parametrize("at", [0, 1_999, 2_000, 5_000, len(LONG) - 1])
def test_a_change_anywhere_in_a_long_text_changes_it(at: int) -> None:
    changed = LONG[:at] + "!" + LONG[at + 1 :]
    of_both = [
        replace(INVOCATION, user_input=changed),
        replace(INVOCATION, tool_calls=(ToolCall("refund", {"id": changed}),)),
    ]
    assert fingerprint(INVOCATION) not in map(fingerprint, of_both)
