"""Special cases of the Claude Agent SDK under OpenInference, with handwritten spans."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "openinference.instrumentation.claude_agent_sdk"
ERROR = "API Error: 529 overloaded"


def of(*, tool: str = "Bash", **more: Any) -> Invocation:
    """A turn with a tool. Keys with `__` are written with dots."""
    stated = {"openinference.span.kind": "AGENT", "input.value": "Fix it"}
    stated |= {key.replace("__", "."): value for key, value in more.items()}
    call = {"openinference.span.kind": "TOOL", "tool.name": tool, "tool.id": "toolu_1"}
    turn = span("turn", "ClaudeAgentSDK.query", stated, end=9, scope=SCOPE)
    step = span("tool", tool, call, parent="turn", start=1, end=2, scope=SCOPE)
    [found] = read(Trace("", trace_id("trace"), (turn, step)))
    return found


def test_neither_names_of_methods_nor_unreliable_tokens_are_read() -> None:
    found = of(output__value="Fixed.", llm__token_count__prompt=91, llm__token_count__completion=1)
    assert (found.agent, found.input_tokens, found.output_tokens) == (None, None, None)
    assert (found.user_input, found.final_response) == ("Fix it", "Fixed.")


@pytest.mark.parametrize(("model", "answer"), [("claude", ERROR), ("<synthetic>", None)])
def test_an_error_that_the_sdk_wrote_as_an_answer_is_none(model: str, answer: str | None) -> None:
    assert of(output__value=ERROR, llm__model_name=model).final_response == answer


@pytest.mark.parametrize(
    ("tool", "kind"), [("Agent", "agent"), ("Task", "agent"), ("Bash", "function")]
)
def test_the_tools_that_run_sub_agents_are_known(tool: str, kind: str) -> None:
    assert [call.kind for call in of(tool=tool).tool_calls] == [kind]
