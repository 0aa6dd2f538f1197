"""Blocks: entering and leaving them, decorated functions, invalid values, and the current span."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Awaitable, Callable, Generator, Iterator
from functools import partial
from typing import Any

import pytest
from opentelemetry import baggage, trace

from pathgauge.collector.client import scenario
from support.instrumented import Service


def test_a_block_restores_the_context_even_after_an_error() -> None:
    service = Service()
    with service.request() as span:
        with pytest.raises(KeyError), scenario("refund"):
            raise KeyError
        assert (trace.get_current_span(), dict(baggage.get_all())) == (span, {})


def test_the_current_span_can_be_written_to_inside_the_block() -> None:
    service = Service()
    with service.request() as real, scenario("refund"):
        span: Any = trace.get_current_span()
        span.set_attribute("one", 1)
        span.set_attributes({"two": 2})
        span.add_event("happened", {"x": 1}, 5)
        span.record_exception(ValueError("bad"), {"y": 1}, 6, escaped=True)
        span.add_link(trace.SpanContext(1, 2, is_remote=True), {"z": 1})
        span.set_status(trace.StatusCode.ERROR, "failed")
        span.update_name("renamed")
        assert (span.is_recording(), span.name, dict(span.attributes)) == (
            True,
            "renamed",
            {"one": 1, "two": 2},
        )
        assert span.get_span_context()[:4] == real.get_span_context()[:4]
        span.end(7)
        assert not span.is_recording()
    [sent] = service.exported()
    assert (sent.name, dict(sent.attributes), sent.status_message, sent.end_ns) == (
        "renamed",
        {"one": 1, "two": 2},
        "failed",
        7,
    )
    assert [(event.name, event.time_ns) for event in sent.events] == [
        ("happened", 5),
        ("exception", 6),
    ]
    assert (
        sent.events[0].attributes,
        sent.events[1].attributes["y"],
        sent.events[1].attributes["exception.escaped"],
    ) == (
        {"x": 1},
        1,
        "True",
    )
    assert [link.span_id.hex() for link in sent.proto.links] == ["0000000000000002"]
    assert sent.proto.links[0].attributes[0].key == "z"


def test_the_current_span_can_be_copied_inside_the_block() -> None:
    service = Service()
    with service.request(), scenario("refund"):
        current: Any = trace.get_current_span()
        copied = copy.copy(current)
        assert (copied.name, copied.get_span_context().trace_state.get("pathgauge")) == (
            current.name,
            "c:refund",
        )
        copied.set_attribute("one", 1)
    assert [dict(sent.attributes) for sent in service.exported()] == [{"one": 1}]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scenario_id": ""}, "scenario id: found '', expected text without white space around it"),
        (
            {"scenario_id": " x"},
            "scenario id: found ' x', expected text without white space around it",
        ),
        (
            {"scenario_id": None},
            "scenario id: found None, expected text without white space around it",
        ),
        ({"run": 7}, "run: found 7, expected text without white space around it"),
        (
            {"conversation": "c\n"},
            "conversation: found 'c\\n', expected text without white space around it",
        ),
        ({"user": ""}, "user: found '', expected text without white space around it"),
        (
            {"scenario_id": '"x"'},
            "scenario id: found '\"x\"', expected text that does not begin with a quotation mark",
        ),
        (
            {"scenario_id": "N/A"},
            "scenario id: found 'N/A', expected an id and not a placeholder for missing content",
        ),
        ({"user": "\ud800"}, "user: found '\\ud800', expected text that can be encoded in UTF-8"),
        (
            {"user": "é" * 43},
            "user: found 258 characters after percent-encoding, expected at most 256",
        ),
        (
            {"scenario_id": "x", "run": "r" * 251},
            (
                f"scenario id, turn and run: found 'c:x;r:{'r' * 251}', expected at most 256"
                " characters"
            ),
        ),
        ({"turn": -1}, "turn: found -1, expected a whole number from 0 to 9007199254740991"),
        (
            {"turn": 2**53},
            "turn: found 9007199254740992, expected a whole number from 0 to 9007199254740991",
        ),
        ({"turn": True}, "turn: found True, expected a whole number from 0 to 9007199254740991"),
        ({"turn": "1"}, "turn: found '1', expected a whole number from 0 to 9007199254740991"),
    ],
)
def test_values_that_the_collector_could_not_read_are_rejected(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        scenario(**{"scenario_id": "refund", **values})


def test_the_longest_values_are_accepted() -> None:
    service = Service()
    with (
        service.request(),
        scenario(
            "s", turn=2**53 - 1, run="r" * 231, conversation="é" * 42 + "1234", user="u" * 256
        ),
        service.agent(),
    ):
        pass
    assert [len(span.trace_state) for span in service.exported()] == [len("pathgauge=") + 256, 0]


def test_every_call_of_a_decorated_function_is_in_the_block_even_a_nested_one() -> None:
    @scenario("refund", turn=1)
    def handle(depth: int) -> list[object]:
        """Docstring."""
        inner = handle(depth - 1) if depth else []
        return [*inner, baggage.get_baggage("pathgauge.turn")]

    assert (handle(2), handle(0), handle.__doc__) == (["1", "1", "1"], ["1"], "Docstring.")
    assert baggage.get_all() == {}


async def test_a_decorated_async_function_is_in_the_block_while_it_is_awaited() -> None:
    barrier = asyncio.Barrier(2)

    @scenario("refund")
    async def handle(number: int) -> Any:
        await barrier.wait()
        return number, baggage.get_baggage("pathgauge.scenario.id")

    assert list(await asyncio.gather(handle(1), handle(2))) == [(1, "refund"), (2, "refund")]
    assert baggage.get_all() == {}


class Handler:
    """A callable without `async` that returns an awaitable."""

    async def __call__(self) -> Any:
        await asyncio.sleep(0)
        return baggage.get_baggage("pathgauge.scenario.id")


class Later:
    """An awaitable that is not a coroutine."""

    def __await__(self) -> Generator[None, None, Any]:
        yield
        return baggage.get_baggage("pathgauge.scenario.id")


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(Handler(), id="object"),
        pytest.param(partial(Handler()), id="partial of an object"),
        pytest.param(partial(Handler.__call__, Handler()), id="partial of a function"),
        pytest.param(lambda: Handler.__call__(Handler()), id="lambda"),
        pytest.param(Later, id="awaitable"),
        pytest.param(lambda: asyncio.ensure_future(Handler()()), id="task"),
    ],
)
async def test_any_awaitable_of_a_decorated_function_is_in_the_block(
    function: Callable[[], Awaitable[Any]],
) -> None:
    handle = scenario("refund")(function)
    assert list(await asyncio.gather(handle(), handle())) == ["refund", "refund"]
    assert baggage.get_all() == {}


async def test_a_task_that_a_decorated_function_started_can_be_cancelled() -> None:
    task = scenario("refund")(lambda: asyncio.ensure_future(Handler()()))()
    assert task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_generators_cannot_be_decorated() -> None:
    def one() -> Iterator[int]:
        yield 1

    async def two() -> Any:
        yield 1

    for generator in (one, two, partial(one)):
        with pytest.raises(
            TypeError,
            match=(
                r"found a generator function, expected another one; use `with scenario\(\.\.\.\)`"
            ),
        ):
            scenario("refund")(generator)


def test_a_block_can_be_entered_again_only_after_its_end() -> None:
    block = scenario("refund")
    for _ in range(2):
        with block:
            assert baggage.get_baggage("pathgauge.scenario.id") == "refund"
            with pytest.raises(RuntimeError, match="call scenario\\(\\) for each"), block:
                pass
            assert baggage.get_baggage("pathgauge.scenario.id") == "refund"
        assert baggage.get_all() == {}
