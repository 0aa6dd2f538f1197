"""Special cases of Claude Code that the captures do not have, with handwritten spans."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "com.anthropic.claude_code.tracing"


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def one(
    id: str,
    type: str,
    start: float = 0,
    end: float = 9,
    *,
    parent: str | None = "turn",
    error: str | None = None,
    events: Any = (),
    **more: Any,
) -> Span:
    """Keys with `__` are written with dots."""
    operations = {"interaction": "invoke_agent", "tool": "execute_tool"}
    attributes = {
        "span.type": type,
        "session.id": "s1",
        **({"gen_ai.operation.name": operations[type]} if type in operations else {}),
    }
    attributes |= {key.replace("__", "."): value for key, value in more.items()}
    name = f"claude_code.{type}"
    resource = {"service.name": "claude-code"}
    return span(
        id,
        name,
        attributes,
        parent=parent,
        start=start,
        end=end,
        scope=SCOPE,
        error=error,
        events=events,
        resource=resource,
    )


def turn(**more: Any) -> Span:
    return one("turn", "interaction", parent=None, **more)


def test_a_turn_with_all_content_switched_on() -> None:
    [read_one] = of(
        turn(user_prompt="[urgent] Fix it", gen_ai__conversation__id="s1"),
        one(
            "m",
            "llm_request",
            1,
            2,
            gen_ai__request__model="claude",
            response__model_output="Looking.",
            stop_reason="tool_use",
        ),
        one(
            "t",
            "tool",
            3,
            6,
            tool_name="Bash",
            tool_use_id="toolu_1",
            tool_input='[TOOL INPUT: Bash]\n{"command": "ls"}',
            new_context='[TOOL RESULT: Bash]\n{"stdout": "a.py", "stderr": ""}',
            events=[("tool.output", {"bash_command": "ls", "output": "a.py"})],
        ),
        one("x", "tool.execution", 4, 5, parent="t", success=True),
        one("m2", "llm_request", 7, 8, response__model_output="Fixed.", stop_reason="end_turn"),
    )
    assert (read_one.dialect, read_one.agent, read_one.conversation_id, read_one.model) == (
        "claude-code",
        "claude-code",
        "s1",
        "claude",
    )
    assert (read_one.user_input, read_one.final_response) == ("[urgent] Fix it", "Fixed.")
    [call] = read_one.tool_calls
    assert (call.id, call.name, call.arguments, call.result, call.error) == (
        "toolu_1",
        "Bash",
        {"command": "ls"},
        "a.py",
        None,
    )


def test_by_default_only_names_are_recorded() -> None:
    [read_one] = of(
        turn(user_prompt="<REDACTED>"),
        one("m", "llm_request", 1, 2, gen_ai__response__finish_reasons=["tool_use"]),
        one("t", "tool", 3, 6, tool_name="Read", tool_use_id="toolu_1"),
    )
    assert ([(call.name, call.arguments) for call in read_one.tool_calls], read_one.user_input) == (
        [("Read", None)],
        None,
    )
    assert "content_missing" in read_one.flags


def test_text_beside_calls_that_are_not_recorded_is_no_answer() -> None:
    [read_one] = of(
        turn(),
        one("m", "llm_request", 1, 2, response__model_output="Looking.", stop_reason="tool_use"),
    )
    assert read_one.final_response is None


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (
            {
                "input_tokens": 2,
                "cache_read_tokens": 80,
                "cache_creation_tokens": 18,
                "output_tokens": 7,
            },
            (100, 7),
        ),
        ({"input_tokens": 2, "output_tokens": 7}, (2, 7)),
        ({}, (None, None)),
    ],
)
def test_input_tokens_include_those_read_from_the_cache(
    usage: dict[str, Any], tokens: tuple[int | None, int | None]
) -> None:
    [read_one] = of(turn(), one("m", "llm_request", 1, 2, **usage))
    assert (read_one.input_tokens, read_one.output_tokens) == tokens


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (one("x", "tool.execution", 4, 5, parent="t", success=True), None),
        (
            one(
                "x", "tool.execution", 4, 5, parent="t", success=False, error="ENOENT: no such file"
            ),
            "ENOENT: no such file",
        ),
        (
            one("x", "tool.execution", 4, 5, parent="t", success=False, error_class="ShellError"),
            "ShellError",
        ),
        (
            one("x", "tool.blocked_on_user", 4, 5, parent="t", decision="accept", source="user"),
            None,
        ),
        (
            one("x", "tool.blocked_on_user", 4, 5, parent="t", decision="reject", source="user"),
            "rejected",
        ),
    ],
)
def test_tool_details_report_the_failure_and_are_no_calls(part: Span, error: str | None) -> None:
    [read_one] = of(turn(), one("t", "tool", 3, 6, tool_name="Bash"), part)
    assert [(call.name, call.error) for call in read_one.tool_calls] == [("Bash", error)]


def test_a_tool_detail_without_its_tool_is_no_call() -> None:
    [read_one] = of(turn(), one("x", "tool.execution", 4, 5, success=False))
    assert (read_one.tool_calls, read_one.error) == ((), False)


def test_the_tool_of_a_server_has_the_name_by_which_models_know_it() -> None:
    tool = one(
        "t",
        "tool",
        tool_name="mcp__github__search",
        gen_ai__tool__name="search",
        anthropic__mcp__server__name="github",
    )
    assert [call.name for call in of(turn(), tool)[0].tool_calls] == ["mcp__github__search"]


def test_the_work_of_a_sub_agent_is_below_its_tool() -> None:
    [read_one] = of(
        turn(),
        one("t", "tool", 1, 8, tool_name="Agent", tool_use_id="toolu_1"),
        one("x", "tool.execution", 1, 8, parent="t", success=True),
        one(
            "m",
            "llm_request",
            2,
            3,
            parent="x",
            input_tokens=5,
            output_tokens=1,
            response__model_output="inner",
            stop_reason="end_turn",
        ),
        one("t2", "tool", 4, 6, parent="x", tool_name="Agent", tool_use_id="toolu_2"),
        one("t3", "tool", 5, 6, parent="t2", tool_name="Read", tool_use_id="toolu_3"),
        one(
            "m2",
            "llm_request",
            8,
            9,
            input_tokens=5,
            output_tokens=1,
            response__model_output="outer",
            stop_reason="end_turn",
        ),
    )
    calls = [
        ("Agent", "agent", "toolu_1"),
        ("Agent", "agent", "toolu_2"),
        ("Read", "function", "toolu_3"),
    ]
    assert [(call.name, call.kind, call.id) for call in read_one.tool_calls] == calls
    assert (read_one.final_response, read_one.input_tokens) == ("outer", 10)


def test_a_request_that_failed_last_fails_the_turn() -> None:
    failed = one("m", "llm_request", 1, 2, success=False, error="overloaded", status_code=529)
    assert (of(turn(), failed)[0].error, of(turn(), failed)[0].model_calls[0].error) == (
        True,
        "overloaded",
    )


@pytest.mark.parametrize(
    ("source", "is_call"),
    [
        ("sdk", True),
        ("repl_main_thread", True),
        ("repl_main_thread:outputStyle:custom", True),
        ("agent.custom", True),
        ("generate_session_title", False),
        ("prompt_suggestion", False),
        ("agent_summary", False),
    ],
)
def test_what_the_program_asks_for_itself_is_no_model_call(source: str, is_call: bool) -> None:
    [read_one] = of(
        turn(),
        one("m", "llm_request", 1, 2, output_tokens=7, response__model_output="Fixed."),
        one(
            "m2",
            "llm_request",
            2,
            4,
            output_tokens=3,
            response__model_output="A title",
            query_source_safe=source,
            llm_request__context="interaction",
        ),
    )
    told = (read_one.final_response, read_one.output_tokens)
    assert told == (("A title", 10) if is_call else ("Fixed.", 7))


def test_what_a_tool_asks_a_model_counts_for_the_turn() -> None:
    [read_one] = of(
        turn(),
        one("t", "tool", 1, 5, tool_name="WebFetch"),
        one("x", "tool.execution", 2, 5, parent="t", success=True),
        one(
            "m",
            "llm_request",
            3,
            4,
            parent="x",
            output_tokens=3,
            query_source_safe="web_fetch_apply",
            llm_request__context="tool",
        ),
        one("m2", "llm_request", 6, 7, output_tokens=7, query_source_safe="sdk"),
    )
    assert read_one.output_tokens == 10


def test_the_summary_of_a_session_is_no_answer() -> None:
    summary = one(
        "m",
        "llm_request",
        1,
        2,
        output_tokens=7,
        response__model_output="They said hello.",
        query_source_safe="compact",
    )
    [read_one] = of(turn(user_prompt="/compact"), summary)
    assert (read_one.final_response, read_one.output_tokens) == (None, 7)


CUT_OFF = "\n\n[TRUNCATED - Content exceeds 60KB limit]"


def test_what_was_cut_off_is_not_read_and_flagged() -> None:
    [read_one] = of(
        turn(user_prompt="Where?"),
        one(
            "t",
            "tool",
            3,
            6,
            tool_name="find",
            tool_input='[TOOL INPUT: find]\n{"city": "Bon' + CUT_OFF,
            tool_input_truncated=True,
            events=[("tool.output", {"output": "sunny" + CUT_OFF, "output_truncated": True})],
        ),
        one(
            "m",
            "llm_request",
            7,
            8,
            response__model_output="It is" + CUT_OFF,
            response__model_output_truncated=True,
            stop_reason="end_turn",
        ),
    )
    [call] = read_one.tool_calls
    assert (call.arguments, call.result, read_one.final_response) == (None, None, None)
    assert "truncated" in read_one.flags
