"""An empty answer is an answer; content that is switched off, removed or truncated is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.adk import SCOPE as ADK
from pathgauge.collector.core.invocations.dialects.strands import SCOPE as STRANDS
from pathgauge.collector.core.invocations.messages.values import REDACTED_KEY
from pathgauge.collector.core.invocations.reader import readings
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.testing import log, span, trace_id
from pathgauge.scorers.authoring.builders import reference_turn
from pathgauge.scorers.responses.text_match import ResponseMatchScore
from pathgauge.scorers.types import Invocation
from support.by_hand import INPUT, OUTPUT, REASONS, invocation, reading, text
from support.dialects import INSTALLED, read

EXPECTED = reference_turn(response="I have refunded 59.90 euros.")

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
CHAT = {"gen_ai.operation.name": "chat"}
LANGCHAIN = "openinference.instrumentation.langchain"


def of(*items: Span | LogRecord) -> Invocation:
    spans = tuple(item for item in items if isinstance(item, Span))
    logs = tuple(item for item in items if isinstance(item, LogRecord))
    [found] = read(Trace("", trace_id("trace"), spans, logs))
    return found


def agent(scope: str = "", **attributes: Any) -> Span:
    return span("agent", "invoke_agent a", AGENT | attributes, end=10, scope=scope)


def chat(
    attributes: dict[str, Any] | None = None, *, scope: str = "", name: str = "chat m", **more: Any
) -> Span:
    return span("m", name, CHAT | (attributes or {}), parent="agent", scope=scope, **more)


def choice(message: dict[str, Any]) -> LogRecord:
    body = {"index": 0, "finish_reason": "stop", "message": message}
    return log("gen_ai.choice", body=body, span="m")


RESPONSE = "gcp.vertex.agent.llm_response"
REQUEST = {"gcp.vertex.agent.llm_request": '{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}'}


def adk(response: Any) -> list[Span]:
    body = response if isinstance(response, str) else json.dumps(response)
    return [agent(ADK), chat({**REQUEST, RESPONSE: body}, scope=ADK, name="call_llm")]


def openinference(*model: tuple[str, Any], **output: Any) -> list[Span]:
    root = {"openinference.span.kind": "AGENT", "agent.name": "a", **output}
    below = {"openinference.span.kind": "LLM", **dict(model)}
    return [
        span("agent", "a", root, end=10, scope=LANGCHAIN),
        span("m", "ChatOpenAI", below, parent="agent", scope=LANGCHAIN),
    ]


def vercel(**response: Any) -> list[Span]:
    named = {f"ai.response.{key}": value for key, value in response.items()}
    root = {"ai.operationId": "ai.generateText", "ai.telemetry.functionId": "a"}
    return [span("agent", "ai.generateText", root | named, end=10, scope="ai")]


def message(**fields: Any) -> str:
    return json.dumps([{"role": "assistant", **fields}])


STATE = json.dumps({"messages": [{"type": "ai", "data": {"content": "", "type": "ai"}}]})
LANGFUSE_OUTPUT, LANGFUSE_KIND = "langfuse.observation.output", "langfuse.observation.type"

EMPTY: dict[str, list[Span | LogRecord]] = {
    "conventions, no parts": [agent(), chat({OUTPUT: message(parts=[])})],
    "conventions, structured": [agent(), chat({OUTPUT: [{"role": "assistant", "parts": []}]})],
    "conventions, empty text": [agent(), chat({OUTPUT: text("assistant", "")})],
    "conventions, no messages": [agent(), chat({OUTPUT: "[]"})],
    "conventions, no messages, structured": [agent(), chat({OUTPUT: []})],
    "conventions, no text": [agent(), chat({OUTPUT: ""})],
    "conventions, on the agent": [agent(**{OUTPUT: text("assistant", "")}), chat()],
    "older events, empty content": [agent(), chat(), choice({"role": "assistant", "content": ""})],
    "older events, no content": [agent(), chat(), choice({"role": "assistant", "content": []})],
    "adk, no parts": [*adk({"content": {"role": "model", "parts": []}, "finish_reason": "STOP"})],
    "adk, parts left out": [*adk({"content": {"role": "model"}, "finish_reason": "STOP"})],
    "adk, content left out": [*adk({"finish_reason": "STOP"})],
    "adk, empty part": [*adk({"content": {"role": "model", "parts": [{"text": ""}]}})],
    "openinference, raw output": [*openinference(**{"output.value": ""})],
    "openinference, output of the model": [*openinference(("output.value", ""))],
    "openinference, state of a graph": [*openinference(**{"output.value": STATE})],
    "openinference, content": [*openinference(("llm.output_messages.0.message.content", ""))],
    "langfuse": [span("agent", "a", {LANGFUSE_KIND: "agent", LANGFUSE_OUTPUT: ""})],
    "mlflow": [
        span("agent", "a", {"mlflow.spanType": '"AGENT"', "mlflow.spanOutputs": '""'}),
    ],
    "langsmith": [
        span("agent", "a", {"langsmith.span.kind": "chain", "gen_ai.completion": STATE}),
    ],
    "pydantic-ai": [
        span("agent", "agent run", {"agent_name": "a", "final_result": ""}, scope="pydantic-ai")
    ],
    "strands": [
        span(
            "agent",
            "invoke_agent a",
            AGENT,
            scope=STRANDS,
            events=[("gen_ai.choice", {"message": "\n", "finish_reason": "end_turn"})],
        )
    ],
    "strands, no line break": [
        span(
            "agent",
            "invoke_agent a",
            AGENT,
            scope=STRANDS,
            events=[("gen_ai.choice", {"message": "", "finish_reason": "end_turn"})],
        )
    ],
    "vercel": [*vercel(text="", finishReason="stop")],
    "smolagents": [
        agent(),
        chat(
            {
                OUTPUT: message(
                    parts=[
                        {"type": "tool_call", "name": "final_answer", "arguments": {"answer": ""}}
                    ]
                )
            }
        ),
    ],
}

NOT_RECORDED: dict[str, list[Span | LogRecord]] = {
    "switched off": [agent(), chat({REASONS: ["stop"]})],
    "the text removed": [agent(), chat({OUTPUT: message(parts=[{"type": "text"}])})],
    "a placeholder": [agent(), chat({OUTPUT: message(content="[REDACTED]")})],
    "truncated": [agent(), chat({OUTPUT: '[{"role": "assistant", "par'})],
    "older events, switched off": [agent(), chat(), choice({"role": "assistant"})],
    "adk, switched off": [*adk("{}")],
    "openinference, hidden": [*openinference(**{"output.value": "__REDACTED__"})],
    "openinference, hidden text": [
        *openinference(("llm.output_messages.0.message.content", "__REDACTED__"))
    ],
    "openinference, dropped": [*openinference(("llm.output_messages.0.message.role", "assistant"))],
    "langsmith, hidden": [
        span("agent", "a", {"langsmith.span.kind": "chain", "gen_ai.completion": "{}"})
    ],
    "vercel, switched off": [*vercel(finishReason="stop")],
    "lost calls": [agent(), chat({OUTPUT: message(parts=[], finish_reason="tool_calls")})],
}


@pytest.mark.parametrize("case", EMPTY)
def test_an_empty_answer_scores_0(case: str) -> None:
    found = of(*EMPTY[case])
    assert found.final_response == ""
    assert ResponseMatchScore().score(found, EXPECTED).value == 0


def test_an_empty_answer_is_not_missing_but_what_the_user_asked_may_be() -> None:
    asked, silent = {INPUT: text("user", "Hi")}, {OUTPUT: message(parts=[])}
    assert "content_missing" not in of(agent(), chat({**asked, **silent})).flags
    assert "content_missing" in of(agent(), chat(silent)).flags


def test_a_prompt_without_a_user_is_not_missing() -> None:
    prompt, said = {INPUT: text("system", "Tidy up.")}, {OUTPUT: text("assistant", "Done.")}
    found = of(agent(), chat({**prompt, **said}))
    assert (found.user_input, found.flags) == (None, frozenset())


@pytest.mark.parametrize("case", NOT_RECORDED)
def test_content_that_is_not_recorded_has_no_score(case: str) -> None:
    found = of(*NOT_RECORDED[case])
    assert found.final_response is None
    assert ResponseMatchScore().score(found, EXPECTED).reason == "response_not_recorded"


def test_a_text_anywhere_is_the_answer_although_another_place_is_empty() -> None:
    spoken, silent = {OUTPUT: text("assistant", "Done.")}, {OUTPUT: "[]"}
    assert of(agent(**silent), chat(spoken)).final_response == "Done."
    assert of(agent(**spoken), chat(silent)).final_response == "Done."


def observed(id: str, kind: str, output: str | None, parent: str | None = None) -> Span:
    attributes = {LANGFUSE_KIND: kind}
    if output is not None:
        attributes[LANGFUSE_OUTPUT] = output
    return span(id, id, attributes, parent=parent, end=10)


SAID = json.dumps({"role": "assistant", "content": "Done."})


@pytest.mark.parametrize("output", ["", STATE])
def test_what_the_outermost_agent_returns_is_the_answer_although_others_said_more(
    output: str,
) -> None:
    found = of(
        observed("main", "agent", output),
        observed("billing", "agent", SAID, parent="main"),
        observed("m", "generation", SAID, parent="billing"),
    )
    assert found.final_response == ""


@pytest.mark.parametrize("output", [None, "[]", "{}"])
def test_an_agent_that_does_not_say_what_it_returned_answers_as_its_model(
    output: str | None,
) -> None:
    found = of(observed("main", "agent", output), observed("m", "generation", SAID, parent="main"))
    assert found.final_response == "Done."


def stating(id: str, result: str | None, parent: str | None = None, start: float = 0) -> Span:
    attributes = (
        {"agent_name": id} if result is None else {"agent_name": id, "final_result": result}
    )
    return span(id, "agent run", attributes, scope="pydantic-ai", parent=parent, start=start, end=9)


def test_an_empty_answer_that_the_outermost_agent_states_outranks_its_model() -> None:
    said = span("m", "chat m", {**CHAT, OUTPUT: text("assistant", "Done.")}, parent="a")
    assert of(stating("a", ""), said).final_response == ""


@pytest.mark.parametrize(("said", "answer"), [(None, ""), ("Done.", "Done.")])
def test_an_empty_answer_that_an_inner_agent_states_counts_if_nothing_else_is_recorded(
    said: str | None, answer: str
) -> None:
    output = {OUTPUT: text("assistant", said)} if said else {}
    model = span("m", "chat m", {**CHAT, **output}, parent="b", start=2, end=3, scope="pydantic-ai")
    found = of(stating("a", None), stating("b", "", parent="a", start=1), model)
    assert found.final_response == answer


def test_an_inner_agent_that_returns_nothing_does_not_hide_what_its_model_said() -> None:
    found = of(
        observed("main", "agent", None),
        observed("billing", "agent", "", parent="main"),
        observed("m", "generation", SAID, parent="billing"),
    )
    assert found.final_response == "Done."


def test_an_empty_list_of_messages_does_not_hide_those_in_events() -> None:
    said = choice({"role": "assistant", "content": "Done."})
    assert of(agent(), chat({OUTPUT: "[]"}), said).final_response == "Done."


def test_the_user_said_nothing_empty() -> None:
    """An empty input is not what the user asked; another place may have it."""
    asked = log("gen_ai.user.message", body={"content": "Hi"}, span="m")
    found = of(agent(**{INPUT: "[]"}), chat({INPUT: ""}), asked)
    assert found.user_input == "Hi"


def test_an_agent_whose_last_model_call_failed_has_no_answer_even_if_it_states_an_empty_one() -> (
    None
):
    found = of(agent(final_result="", **{OUTPUT: ""}), chat(error="overloaded"))
    assert (found.final_response, found.error) == (None, True)


def test_an_agent_that_fails_on_an_empty_answer_has_failed_with_an_empty_answer() -> None:
    failed = span("agent", "invoke_agent a", AGENT, end=10, error="empty response")
    found = of(failed, chat({OUTPUT: message(parts=[])}))
    assert (found.final_response, found.error) == ("", True)


PROMPT = {INPUT: text("user", "Refund it.")}
STOPPED = {**PROMPT, REASONS: ["stop"]}
ASKED = {OUTPUT: message(parts=[{"type": "tool_call", "name": "look", "arguments": {}}])}


def silent(chat: dict[str, Any], *before: dict[str, Any]) -> Any:
    """An agent without messages of its own, whose last model call has these attributes."""
    return reading(*invocation(answer=None, chats=[*before, chat]))


def test_an_answer_that_is_left_out_beside_recorded_outputs_is_empty() -> None:
    """OpenTelemetry's instrumentation of LangChain leaves an empty message out."""
    found = silent(STOPPED, {**STOPPED, **ASKED, REASONS: ["tool_calls"]})
    assert found.invocation.final_response == ""
    assert "responses" not in found.doubts.flags


def test_an_answer_that_is_left_out_is_in_doubt_until_the_version_has_shown_one() -> None:
    found = silent(STOPPED)
    assert (found.invocation.final_response, found.invocation.flags) == (
        None,
        {"content_missing"},
    )
    assert found.settled(frozenset()) == found.invocation
    assert found.settled({"tools", "inputs"}) == found.invocation
    settled = found.settled({"responses"})
    assert (settled.final_response, settled.flags) == ("", frozenset())


FLATTENED = {
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "Refund it.",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.finish_reason": "stop",
    "llm.request.type": "chat",
}


@pytest.mark.parametrize(
    "items",
    [
        [agent(), chat(FLATTENED)],
        [
            agent(),
            chat(),
            log("gen_ai.user.message", body={"content": "Refund it."}, span="m"),
            choice({"role": "assistant"}),
        ],
    ],
    ids=["openllmetry up to 0.54", "openai-v2"],
)
def test_older_instrumentations_leave_the_content_of_the_message_out(
    items: list[Span | LogRecord],
) -> None:
    spans = tuple(item for item in items if isinstance(item, Span))
    logs = tuple(item for item in items if isinstance(item, LogRecord))
    [found] = readings(Trace("", trace_id("trace"), spans, logs), INSTALLED)
    assert found.invocation.final_response is None
    assert found.settled({"responses"}).final_response == ""


def test_arguments_that_are_not_recorded_stay_missing_when_the_answer_is_settled() -> None:
    spans = invocation("look", answer=None, arguments=None, chats=[{}, STOPPED])
    settled = reading(*spans).settled({"responses", "tools"})
    assert (settled.final_response, set(settled.flags)) == ("", {"content_missing"})


@pytest.mark.parametrize(
    "chat",
    [
        {REASONS: ["stop"]},
        {INPUT: message(parts=[{"type": "text"}]), REASONS: ["stop"]},
        PROMPT,
        {**PROMPT, REASONS: ["tool_calls"]},
        {**PROMPT, REASONS: ["error"]},
        {**STOPPED, OUTPUT: '[{"role": "assis'},
        {**STOPPED, OUTPUT: message(parts=[{"type": "text"}])},
        {**STOPPED, REDACTED_KEY: ["gen_ai.output.messages"]},
    ],
    ids=[
        "no prompt",
        "a prompt without its text",
        "no finish reason",
        "it asked for tools",
        "it failed",
        "it is truncated",
        "its text was removed",
        "pathgauge removed something",
    ],
)
def test_an_answer_that_may_have_been_removed_is_not_in_doubt(chat: dict[str, Any]) -> None:
    found = silent(chat)
    assert "responses" not in found.doubts.flags
    assert found.settled({"responses"}).final_response is None


def test_a_model_call_that_failed_left_nothing_out() -> None:
    failed = chat(STOPPED, error="connection lost")
    [found] = readings(Trace("", trace_id("trace"), (agent(), failed)), INSTALLED)
    assert "responses" not in found.doubts.flags


def test_an_answer_that_the_sdk_dropped_is_not_in_doubt() -> None:
    *spans, model = invocation(answer=None, chats=[STOPPED])
    model.proto.dropped_attributes_count = 1
    cut = Span(model.proto.SerializeToString(), model.resource, model.scope)
    assert "responses" not in reading(*spans, cut).doubts.flags
