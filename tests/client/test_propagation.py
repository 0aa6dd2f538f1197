"""The collector reads what `scenario` sets, by every carrier."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context

import pytest
from hypothesis import given, strategies as st
from opentelemetry import baggage, trace
from opentelemetry.context import Context
from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from pathgauge.collector import client
from pathgauge.collector.client import ScenarioSpanProcessor, scenario
from pathgauge.collector.core.invocations import scenario as reader
from pathgauge.collector.core.invocations.messages.values import PLACEHOLDERS
from pathgauge.collector.core.invocations.scenario import TURN
from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.core.traces.ancestry import is_complete
from support.dialects import read
from support.instrumented import Service, current

VENDORS = [(f"vendor{number}", "1") for number in range(32)]


def vendors(number: int) -> Context:
    """The context of a span with `number` tracestate members of other vendors."""
    known = trace.SpanContext(1, 2, True, trace.TraceFlags(1), trace.TraceState(VENDORS[:number]))
    return trace.set_span_in_context(trace.NonRecordingSpan(known), Context())


def test_spans_below_the_current_one_carry_the_scenario_without_a_processor() -> None:
    service = Service()
    with (
        service.request(),
        scenario("refund", turn=2, run="2026-11-21"),
        service.agent(),
        service.tracer.start_as_current_span("chat"),
    ):
        pass
    chat, agent, request = spans = service.exported()
    assert (request.trace_state, agent.trace_state, chat.trace_state) == (
        "",
        *["pathgauge=c:refund;t:2;r:2026-11-21"] * 2,
    )
    assert (request.parent_id, agent.parent_id, chat.parent_id) == (
        None,
        request.span_id,
        agent.span_id,
    )
    [invocation] = read(Trace("", request.trace_id, spans))
    assert (invocation.scenario_id, invocation.turn, invocation.run_id) == (
        "refund",
        2,
        "2026-11-21",
    )


def test_without_a_current_span_the_processor_sets_the_scenario_and_roots_stay_roots() -> None:
    service = Service(ScenarioSpanProcessor())
    with scenario("refund", turn=0, run="7", conversation="c-1", user="u-1"), service.agent():
        pass
    [span] = service.exported()
    assert (span.parent_id, span.trace_state) == (None, "")
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "a",
        "pathgauge.scenario.id": "refund",
        "pathgauge.turn": "0",
        "test.suite.run.id": "7",
        "session.id": "c-1",
        "user.id": "u-1",
    }
    [invocation] = read(Trace("", span.trace_id, (span,)))
    assert (invocation.scenario_id, invocation.turn, invocation.conversation_id) == (
        "refund",
        0,
        "c-1",
    )


@pytest.mark.parametrize(
    "processors", [(), (ScenarioSpanProcessor(),)], ids=["tracestate", "processor"]
)
def test_the_inner_scenario_applies_until_it_ends(processors: tuple[SpanProcessor, ...]) -> None:
    service = Service(*processors)
    with service.request(), scenario("outer", turn=3, run="7", conversation="c"):
        with scenario("inner"), service.agent("within"):
            assert baggage.get_all() == {"pathgauge.scenario.id": "inner", "session.id": "c"}
        with service.agent("after"):
            pass
    assert service.scenarios() == {"within": ("inner", None), "after": ("outer", 3)}


@pytest.mark.parametrize(
    "processors", [(), (ScenarioSpanProcessor(),)], ids=["tracestate", "processor"]
)
def test_a_thread_with_a_copied_context_is_in_the_block(
    processors: tuple[SpanProcessor, ...],
) -> None:
    service = Service(*processors)

    def work(name: str) -> None:
        with service.agent(name):
            pass

    with service.request(), scenario("refund", turn=1):
        threads = [
            threading.Thread(target=copy_context().run, args=(work, "copied")),
            threading.Thread(target=work, args=("bare",)),
        ]
        for thread in threads:
            thread.start()
            thread.join()
    assert service.scenarios() == {"copied": ("refund", 1), "bare": (None, None)}


@pytest.mark.parametrize(
    "processors", [(), (ScenarioSpanProcessor(),)], ids=["tracestate", "processor"]
)
async def test_tasks_keep_their_own_scenarios(processors: tuple[SpanProcessor, ...]) -> None:
    service = Service(*processors)
    barrier = asyncio.Barrier(2)

    async def subtask(name: str) -> None:
        await barrier.wait()
        with service.agent(name):
            await barrier.wait()

    async def task(name: str, turn: int) -> None:
        with service.request(), scenario(name, turn=turn):
            await asyncio.create_task(subtask(name))

    await asyncio.gather(task("one", 1), task("two", 2))
    assert service.scenarios() == {"one": ("one", 1), "two": ("two", 2)}


def test_members_of_other_vendors_are_kept_after_ours(caplog: pytest.LogCaptureFixture) -> None:
    with current(vendors(2)), scenario("outer"), scenario("inner"):
        state = trace.get_current_span().get_span_context().trace_state
    assert (state.to_header(), caplog.messages) == ("pathgauge=c:inner,vendor0=1,vendor1=1", [])


def test_a_remote_caller_stays_remote() -> None:
    service = Service()
    with current(vendors(0)), scenario("refund"), service.agent():
        pass
    [span] = service.exported()
    assert (span.trace_state, span.parent_id, span.remote_parent) == (
        "pathgauge=c:refund",
        "0000000000000002",
        True,
    )


def test_the_last_of_more_than_32_members_is_removed() -> None:
    with current(vendors(32)), scenario("refund"):
        state = trace.get_current_span().get_span_context().trace_state
    assert list(state.items()) == [("pathgauge", "c:refund"), *VENDORS[:31]]


def test_requests_carry_the_scenario_to_an_agent_without_the_processor() -> None:
    probe, remote, headers = (
        TracerProvider(shutdown_on_exit=False).get_tracer("probe"),
        Service(),
        dict[str, str](),
    )
    with probe.start_as_current_span("probe"), scenario("refund, 50 % off; é", turn=4, run="7"):
        inject(headers)
    with current(extract(headers)), remote.agent():
        pass
    [span] = remote.exported()
    [invocation] = read(Trace("", span.trace_id, (span,)))
    assert (invocation.scenario_id, invocation.turn) == ("refund, 50 % off; é", 4)
    assert is_complete({span.span_id: span}), "the probe's span is never exported"


def test_requests_of_a_caller_without_spans_carry_the_scenario_to_an_agent_with_the_processor() -> (
    None
):
    remote, headers = Service(ScenarioSpanProcessor()), dict[str, str]()
    with scenario("refund, 50 % off; é", turn=4):
        inject(headers)
    assert sorted(headers) == ["baggage"]
    with current(extract(headers)), remote.agent():
        pass
    assert remote.scenarios() == {"a": ("refund, 50 % off; é", 4)}


LOCAL, MARKING, PROBE = (
    Service(),
    Service(ScenarioSpanProcessor()),
    TracerProvider(shutdown_on_exit=False).get_tracer("probe"),
)
awkward = st.text(st.sampled_from(" %,;=:/+\t\n\x00aé\u2003\ud800"))
words = awkward | st.text(st.characters(), max_size=40) | st.sampled_from(sorted(PLACEHOLDERS))


@given(words, st.none() | st.integers(-1, 2**53), st.sampled_from([None, "7"]) | words)
def test_the_collector_reads_every_value_that_the_client_accepts(
    name: str, turn: int | None, run: str | None
) -> None:
    try:
        block = scenario(name, turn=turn, run=run)
    except ValueError:
        return
    headers: dict[str, str] = {}
    with PROBE.start_as_current_span("probe"), block:
        inject(headers)
        for service in (LOCAL, MARKING):
            with service.agent():
                pass
    assert (LOCAL.scenarios(), MARKING.scenarios()) == ({"a": (name, turn)}, {"a": (name, turn)})
    for service, carrier in ((LOCAL, ("traceparent", "tracestate")), (MARKING, ("baggage",))):
        with current(extract({key: headers[key] for key in carrier}, Context())), service.agent():
            pass
        assert service.scenarios() == {"a": (name, turn)}, carrier


def test_the_processor_copies_nothing_but_its_keys() -> None:
    context = Context()
    for key, value in {
        "secret": "s",
        "pathgauge.secret": "s",
        "test.case.id": "x",
        "user.id": 7,
        "session.id": "c",
    }.items():
        context = baggage.set_baggage(key, value, context)
    copied = []
    for processor in (ScenarioSpanProcessor(), ScenarioSpanProcessor("test.case.id")):
        service = Service(processor)
        service.tracer.start_span("explicit context", context).end()
        with current(context):
            service.tracer.start_span("current context").end()
        copied += [dict(span.attributes) for span in service.exported()]
    assert (
        copied
        == [{"user.id": "7", "session.id": "c"}] * 2
        + [{"user.id": "7", "session.id": "c", "test.case.id": "x"}] * 2
    )


def test_the_processor_overwrites_nothing() -> None:
    service = Service(ScenarioSpanProcessor())
    with (
        scenario("outside", run="7"),
        service.tracer.start_as_current_span("own", attributes={"pathgauge.scenario.id": "own"}),
    ):
        pass
    [span] = service.exported()
    assert dict(span.attributes) == {"pathgauge.scenario.id": "own", "test.suite.run.id": "7"}


def test_client_and_collector_use_the_same_keys() -> None:
    assert (reader.DEFAULT_KEYS[0], TURN, PLACEHOLDERS) == (
        client.SCENARIO_ID,
        client.TURN,
        client.PLACEHOLDERS,
    )
    assert reader.RUN_KEYS[0] == client.RUN_ID
