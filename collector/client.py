"""Tells pathgauge which scenario an agent works on: the scenario id is set in the OpenTelemetry
context and exported with the agent's spans.

For test drivers, gateways and services that call an agent. This file needs only `opentelemetry-api`
and `opentelemetry-sdk`, not pathgauge: copy it into your service, or import it from here.

    provider.add_span_processor(ScenarioSpanProcessor())

    with scenario("refund_damaged", turn=0, run="2026-11-21"):
        agent.run("My parcel arrived damaged, I want my money back.")

The id is carried in two ways:

baggage
    Entries such as `pathgauge.scenario.id`. `ScenarioSpanProcessor` copies them onto every span
    that starts in the block.
tracestate
    The member `pathgauge=c:<scenario id>;t:<turn>;r:<run id>`, percent-encoded. All spans below the
    current one inherit and export it, also in other threads and services. It needs no processor,
    but a current span: a root span has no parent to inherit from, and an invented parent would
    leave every trace without its root. Without a current span, only the baggage is set.

A remote agent is reached by the standard propagators: `opentelemetry.propagate.inject(headers)`
inside the block here, and `extract` there. Instrumented clients and servers do both. A caller
without tracing gets its current span from a provider that exports nothing:

    tracer = TracerProvider().get_tracer("probe")
    with tracer.start_as_current_span("probe"), scenario("refund_damaged"):
        inject(headers)

Every instrumented request that leaves the block carries the values, whoever receives it. Do not put
secrets into them.
"""

from __future__ import annotations

from asyncio import isfuture
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Token
from functools import wraps
from inspect import isasyncgenfunction, isawaitable, iscoroutinefunction, isgeneratorfunction
from typing import Any, ParamSpec, TypeVar, cast
from urllib.parse import quote

from opentelemetry import baggage, trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.sdk.trace import Span, SpanProcessor
from opentelemetry.util import types

SCENARIO_ID = "pathgauge.scenario.id"
TURN = "pathgauge.turn"
RUN_ID = "test.suite.run.id"
CONVERSATION_ID = "session.id"
USER_ID = "user.id"
BAGGAGE_KEYS = (SCENARIO_ID, TURN, RUN_ID, CONVERSATION_ID, USER_ID)
"""The baggage entries that `scenario` sets and `ScenarioSpanProcessor` copies."""

PLACEHOLDERS = frozenset(
    {
        "<elided>",
        "<not specified>",
        "<not serializable>",
        "N/A",
        "__REDACTED__",
        "[REDACTED]",
        "[redacted]",
        "<REDACTED>",
        "redacted-by-litellm",
    }
)
"""Texts that instrumentations write for content that was not captured. pathgauge does not accept
them as ids.
"""

_MEMBER = "pathgauge"
_MAX_CHARS = 256
_MAX_MEMBERS = 32
"""Limits of the W3C tracestate."""
_MAX_TURNS = 2**53

P = ParamSpec("P")
R = TypeVar("R")


def scenario(
    scenario_id: str,
    *,
    turn: int | None = None,
    run: str | None = None,
    conversation: str | None = None,
    user: str | None = None,
) -> Block:
    """A block in which an agent works on `scenario_id`: use it with `with`, or as the decorator of
    a function, `async` or not.

    `turn` is the index in a multi-turn reference, from 0; `run` is the id of the test run;
    `conversation` is an id that its turns share. Blocks nest: the inner block replaces scenario,
    turn and run of the outer one until it ends, and keeps conversation and user unless they are
    given. asyncio tasks are always inside the block; threads only when their context was copied
    (`contextvars.copy_context`).

    Raises ValueError for text that pathgauge could not read back: empty text, text with white space
    around it, with a quotation mark at the start, a placeholder for missing content, or more than
    256 characters after percent-encoding, for each value and for scenario, turn and run together.
    """
    _check_text("scenario id", scenario_id)
    for name, text in {"run": run, "conversation": conversation, "user": user}.items():
        if text is not None:
            _check_text(name, text)
    turn_text = None if turn is None else _turn_text(turn)
    replaced = {SCENARIO_ID: scenario_id, TURN: turn_text, RUN_ID: run}
    inherited = {CONVERSATION_ID: conversation, USER_ID: user}
    entries = replaced | {key: text for key, text in inherited.items() if text is not None}
    fields = {"c": scenario_id, "t": turn_text, "r": run}
    member = ";".join(f"{name}:{quote(text)}" for name, text in fields.items() if text is not None)
    if len(member) > _MAX_CHARS:
        raise ValueError(
            f"scenario id, turn and run: found {member!r}, expected at most {_MAX_CHARS}"
            " characters in total"
        )
    return Block(entries, member)


class Block:
    """A scenario to enter. Concurrent `with` statements need a block each; a decorated function can
    run concurrently with itself.
    """

    def __init__(self, entries: Mapping[str, str | None], member: str) -> None:
        """`entries` are set in the baggage, or removed if `None`; `member` is of the tracestate."""
        self._entries = entries
        self._member = member
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        if self._token is not None:
            raise RuntimeError("this block is already entered: call scenario() for each `with`")
        self._token = attach(self._context())

    def __exit__(self, *exception: object) -> None:
        if self._token is not None:
            token, self._token = self._token, None
            detach(token)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Run every call of `function` in the block. If it returns an awaitable, the block lasts
        until that is done.

        Raises TypeError for a generator function, whose body runs after the call.
        """
        if isgeneratorfunction(function) or isasyncgenfunction(function):
            name = getattr(function, "__qualname__", repr(function))
            raise TypeError(
                f"{name}: found a generator function, expected another one; use"
                " `with scenario(...)` inside it"
            )
        if iscoroutinefunction(function):

            @wraps(function)
            async def async_wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await self._await_inside(function(*args, **kwargs))

            return cast("Callable[P, R]", async_wrapper)

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            with Block(self._entries, self._member):
                result = function(*args, **kwargs)
            # A future already has the context of the call, and callers may need it unwrapped.
            if isawaitable(result) and not isfuture(result):
                return cast("R", self._await_inside(result))
            return result

        return wrapper

    async def _await_inside(self, result: Awaitable[Any]) -> Any:
        with Block(self._entries, self._member):
            return await result

    def _context(self) -> Context:
        context = get_current()
        for key, value in self._entries.items():
            context = _with_entry(context, key, value)
        span = trace.get_current_span(context)
        if span.get_span_context().is_valid:
            context = trace.set_span_in_context(_SpanWithState(span, self._member), context)
        return context


class ScenarioSpanProcessor(SpanProcessor):
    """Copies `BAGGAGE_KEYS` from the baggage onto every span that starts, and no other baggage.

    `more` are further keys to copy, such as `test.case.id`. Attributes that a span already has are
    not overwritten.
    """

    def __init__(self, *more: str) -> None:
        self._keys = (*BAGGAGE_KEYS, *more)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Copy the baggage of the new span's context."""
        existing = span.attributes or {}
        for key in self._keys:
            value = baggage.get_baggage(key, parent_context)
            if value is not None and key not in existing:
                span.set_attribute(key, str(value))


class _SpanWithState(trace.Span):
    """The current span with another tracestate, which its children inherit. Everything else is
    delegated to the span.
    """

    def __init__(self, span: trace.Span, member: str) -> None:
        original = span.get_span_context()
        others = [(key, value) for key, value in original.trace_state.items() if key != _MEMBER]
        # W3C: a changed member moves to the front, and surplus members are removed at the end.
        state = trace.TraceState([(_MEMBER, member), *others][:_MAX_MEMBERS])
        self._span = span
        self._context = trace.SpanContext(
            original.trace_id, original.span_id, original.is_remote, original.trace_flags, state
        )

    def __getattr__(self, name: str) -> Any:
        """Attributes of SDK spans that the API does not have, such as `name` and `attributes`."""
        # While this object is being copied, it does not have its own attributes yet.
        if name in ("_span", "_context") or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._span, name)

    def get_span_context(self) -> trace.SpanContext:
        return self._context

    def is_recording(self) -> bool:
        return self._span.is_recording()

    def set_attributes(self, attributes: Mapping[str, types.AnyValue]) -> None:
        self._span.set_attributes(attributes)

    def set_attribute(self, key: str, value: types.AnyValue) -> None:
        self._span.set_attribute(key, value)

    def add_event(
        self, name: str, attributes: types.Attributes = None, timestamp: int | None = None
    ) -> None:
        self._span.add_event(name, attributes, timestamp)

    def add_link(self, context: trace.SpanContext, attributes: types.Attributes = None) -> None:
        self._span.add_link(context, attributes)

    def update_name(self, name: str) -> None:
        self._span.update_name(name)

    def set_status(
        self, status: trace.Status | trace.StatusCode, description: str | None = None
    ) -> None:
        self._span.set_status(status, description)

    def record_exception(
        self,
        exception: BaseException,
        attributes: types.Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        self._span.record_exception(exception, attributes, timestamp, escaped)

    def end(self, end_time: int | None = None) -> None:
        self._span.end(end_time)


def _with_entry(context: Context, key: str, value: str | None) -> Context:
    if value is None:
        return baggage.remove_baggage(key, context)
    return baggage.set_baggage(key, value, context)


def _turn_text(turn: int) -> str:
    if not isinstance(turn, int) or isinstance(turn, bool) or not 0 <= turn < _MAX_TURNS:
        raise ValueError(
            f"turn: found {turn!r}, expected a whole number from 0 to {_MAX_TURNS - 1}"
        )
    return str(turn)


def _check_text(name: str, value: str) -> None:
    """Raise ValueError for text that baggage, tracestate or the reader would change."""
    if not isinstance(value, str) or not value or value != value.strip():
        raise ValueError(f"{name}: found {value!r}, expected text without white space around it")
    # Some exporters write all text as JSON, so the reader would decode a leading quotation mark.
    if value.startswith('"'):
        raise ValueError(
            f"{name}: found {value!r}, expected text that does not begin with a quotation mark"
        )
    if value in PLACEHOLDERS:
        raise ValueError(
            f"{name}: found {value!r}, expected an id and not a placeholder for missing content"
        )
    try:
        length = len(quote(value))
    except UnicodeEncodeError:
        raise ValueError(
            f"{name}: found {value!r}, expected text that can be encoded in UTF-8"
        ) from None
    if length > _MAX_CHARS:
        raise ValueError(
            f"{name}: found {length} characters after percent-encoding, expected at most"
            f" {_MAX_CHARS}"
        )
