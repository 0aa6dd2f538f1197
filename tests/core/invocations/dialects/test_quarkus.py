"""Special cases of LangChain4j in Quarkus that the captures do not have, with handwritten spans."""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED, read

SCOPE = "io.quarkus.opentelemetry"


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


def agent(
    id: str, at: tuple[float, float], parent: str | None = None, *, failed: bool = False
) -> Span:
    name = "langchain4j.aiservices.OrderAgent.answer"
    events = [_exception("no guard")] if failed else []
    return span(id, name, parent=parent, start=at[0], end=at[1], scope=SCOPE, events=events)


def model(id: str, start: float, parent: str, *, failure: str | None = None, **more: Any) -> Span:
    """A model call of a second. In names of attributes, `__` stands for a dot."""
    attributes = {"gen_ai.request.model": "m-1"}
    attributes |= {f"gen_ai.{key.replace('__', '.')}": value for key, value in more.items()}
    return _work(id, "completion m-1", attributes, start, parent=parent, failure=failure)


def tool(id: str, start: float, parent: str, *, failure: str | None = None, **more: Any) -> Span:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    attributes |= {f"gen_ai.tool.call.{key}": value for key, value in more.items()}
    return _work(id, "langchain4j.tools.look", attributes, start, parent=parent, failure=failure)


def _work(
    id: str,
    name: str,
    attributes: dict[str, Any],
    start: float,
    *,
    parent: str,
    failure: str | None,
) -> Span:
    return span(
        id,
        name,
        attributes,
        parent=parent,
        start=start,
        end=start + 1,
        scope=SCOPE,
        events=[_exception(failure)] if failure else [],
    )


def _exception(message: str) -> tuple[str, dict[str, str]]:
    return "exception", {"exception.type": "java.lang.Error", "exception.message": message}


def test_the_attributes_of_1_11_are_read() -> None:
    call = model(
        "m",
        1,
        "a",
        operation__name="chat",
        provider__name="open_ai",
        usage__input_tokens=10,
        usage__output_tokens=2,
        completion='{"status": "shipped"}',
        response__finish_reasons="STOP",
    )
    [one] = of(agent("a", (0, 9)), call)
    assert (one.dialect, one.agent) == ("quarkus-langchain4j", "OrderAgent")
    assert (one.input_tokens, one.output_tokens) == (10, 2)
    assert one.final_response == '{"status": "shipped"}'


def test_the_question_is_known_only_if_it_is_the_only_line() -> None:
    [one] = of(agent("a", (0, 9)), model("m", 1, "a", prompt='{"id": 1}', completion="Found."))
    assert (one.user_input, one.flags) == ('{"id": 1}', frozenset())
    two_lines = model("m", 1, "a", prompt="Be brief.\nWhere is it?", completion="Here.")
    [other] = of(agent("a", (0, 9)), two_lines)
    assert (other.user_input, sorted(other.flags)) == (None, ["content_missing"])


def test_an_exception_after_the_outcome_is_no_failure() -> None:
    [one] = of(
        agent("a", (0, 9)),
        model("m", 1, "a", failure="contributor", response__finish_reasons="TOOL_EXECUTION"),
        tool("t", 3, "a", failure="contributor", arguments="{}", result='"found"'),
        model("n", 5, "a", failure="contributor", response__finish_reasons="STOP"),
    )
    [call] = one.tool_calls
    assert (call.result, call.error, one.error, one.error_type) == ("found", None, False, None)


def test_an_exception_is_the_failure_of_a_span_without_an_outcome() -> None:
    [one] = of(
        agent("a", (0, 9), failed=True),
        tool("t", 1, "a", failure="not there", arguments="{}"),
        model("m", 3, "a", failure="too busy"),
    )
    [call] = one.tool_calls
    assert (call.result, call.error) == (None, "not there")
    assert (one.error, one.error_type) == (True, "java.lang.Error")


def test_a_stream_has_the_calls_that_follow_also_before_the_span_around_it_arrives() -> None:
    [one] = of(agent("a", (0, 1), "http"), model("m", 2, "http"), tool("t", 4, "http"))
    assert [call.name for call in one.tool_calls] == ["look"]
    assert (one.agent, one.duration_s, len(one.model_calls)) == ("OrderAgent", 5, 1)


def test_an_agent_that_failed_before_its_run_has_none_of_the_calls_that_follow() -> None:
    http = span("http", "GET /", start=0, end=9, scope=SCOPE)
    [one] = of(http, agent("a", (1, 2), "http", failed=True), model("m", 3, "http"))
    assert (one.error, one.model_calls) == (True, ())


def test_other_spans_of_the_application_are_not_its_own() -> None:
    own = span("s", "completion of an order", {"gen_ai.agent.name": "desk"}, scope=SCOPE)
    assert "quarkus-langchain4j" not in [one.name for one in INSTALLED.classify(own)[1]]


def test_an_agent_is_no_entry_because_its_stream_may_only_begin() -> None:
    assert not INSTALLED.may_be_entry(agent("a", (0, 1)))
