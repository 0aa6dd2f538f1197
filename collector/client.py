"""Says which scenario an agent works on: the id goes into the OpenTelemetry context, and reaches
pathgauge with the agent's spans.

For test drivers, gateways and services that call an agent. Needs `opentelemetry-api` and
`opentelemetry-sdk` and nothing else, pathgauge included: copy this file into your service, or
import it from here.

    provider.add_span_processor(ScenarioSpanProcessor())

    with scenario("refund-damaged-item", turn=0, run="2026-11-21"):
        agent.run("My parcel arrived damaged, I want my money back.")

Two carriers take the id along:

    baggage     Entries such as `pathgauge.scenario.id`. `ScenarioSpanProcessor` copies them onto every span that starts in the block.
    tracestate  The member `pathgauge=c:<scenario id>;t:<turn>;r:<run id>`, percent-encoded. All spans below the current one inherit and
                export it, in other threads and services too. It needs no processor, but a current span: a root span has nothing
                to inherit from, and an invented parent would leave every trace without its root. Hence baggage alone where there is none.

A remote agent is reached by the standard propagators: `opentelemetry.propagate.inject(headers)`
inside the block here, `extract` there, as instrumented clients and servers do by themselves. A
caller without tracing gets its current span from a provider that exports nothing:

    tracer = TracerProvider().get_tracer("probe")
    with tracer.start_as_current_span("probe"), scenario("refund-damaged-item"):
        inject(headers)

Every instrumented request that leaves the block carries the values to whomever it goes: no secrets.
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
"""What `scenario` sets in the baggage, and `ScenarioSpanProcessor` copies from it."""

PLACEHOLDERS = frozenset(
    {
        "<elided>",
        "<not specified>",
        "<not serializable>",
        "N/A",
        "__REDACTED__",
        "[REDACTED]",
        "<REDACTED>",
    }
)
"""What instrumentations write for content that was not captured; pathgauge takes none of them for
an id.
"""

_MEMBER = "pathgauge"
_MAX_CHARS = 256
_MAX_MEMBERS = 32
"""Both are limits of the W3C tracestate."""
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
    """The block in which an agent works on `scenario_id`: for `with`, or as decorator of a
    function, `async` or not.

    `turn` is the place in a multi-turn reference, from 0; `run` the id of the test run;
    `conversation` what its turns have in common. Blocks nest: scenario, turn and run of the inner
    one replace those of the outer one until it ends; conversation and user stay unless given anew.
    Threads see the block when their context was copied (`contextvars.copy_context`), asyncio tasks
    always.

    Raises ValueError for what could not be read again: text that is empty, has white space around
    it, begins with a quotation mark, is a placeholder for missing content or is longer than 256
    characters once percent-encoded, as scenario, turn and run may be together.
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
            " characters in all"
        )
    return Block(entries, member)


class Block:
    """A scenario to enter. Each `with` that may run beside another needs its own; a decorated
    function may run beside itself.
    """

    def __init__(self, entries: Mapping[str, str | None], member: str) -> None:
        """`entries` are for the baggage, `None` removes; `member` is the value for the tracestate."""
        self._entries = entries
        self._member = member
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        if self._token is not None:
            raise RuntimeError("this block is entered already: call scenario() for each `with`")
        self._token = attach(self._context())

    def __exit__(self, *exception: object) -> None:
        if self._token is not None:
            token, self._token = self._token, None
            detach(token)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Let every call of `function` be such a block, with the awaiting of what it returns.

        Raises TypeError for generators, whose body runs after the call.
        """
        if isgeneratorfunction(function) or isasyncgenfunction(function):
            name = getattr(function, "__qualname__", repr(function))
            raise TypeError(
                f"{name}: found a generator, expected a function; use `with scenario(...)`"
                " inside it"
            )
        if iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await self._awaited(function(*args, **kwargs))

            return cast("Callable[P, R]", awaited)

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            with Block(self._entries, self._member):
                result = function(*args, **kwargs)
            # A future has the context of the call already, and is more than something to await.
            return (
                cast("R", self._awaited(result))
                if isawaitable(result) and not isfuture(result)
                else result
            )

        return called

    async def _awaited(self, result: Awaitable[Any]) -> Any:
        with Block(self._entries, self._member):
            return await result

    def _context(self) -> Context:
        context = get_current()
        for key, value in self._entries.items():
            context = (
                baggage.remove_baggage(key, context)
                if value is None
                else baggage.set_baggage(key, value, context)
            )
        span = trace.get_current_span(context)
        if span.get_span_context().is_valid:
            context = trace.set_span_in_context(_Bearer(span, self._member), context)
        return context


class ScenarioSpanProcessor(SpanProcessor):
    """Copies `BAGGAGE_KEYS` from the baggage onto every span that starts, and nothing else: baggage
    may hold anything.

    `more` are further keys to copy, such as `test.case.id`. What a span says itself is never
    overwritten.
    """

    def __init__(self, *more: str) -> None:
        self._keys = (*BAGGAGE_KEYS, *more)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Copy what the context of the new span holds."""
        stated = span.attributes or {}
        for key in self._keys:
            value = baggage.get_baggage(key, parent_context)
            if value is not None and key not in stated:
                span.set_attribute(key, str(value))


class _Bearer(trace.Span):
    """The current span as it is, but for the tracestate that spans below it inherit. What is
    written here is written to it.
    """

    def __init__(self, span: trace.Span, member: str) -> None:
        known = span.get_span_context()
        others = [(key, value) for key, value in known.trace_state.items() if key != _MEMBER]
        # W3C: whoever writes comes first, and of too many members the last ones go.
        state = trace.TraceState([(_MEMBER, member), *others][:_MAX_MEMBERS])
        self._span = span
        self._context = trace.SpanContext(
            known.trace_id, known.span_id, known.is_remote, known.trace_flags, state
        )

    def __getattr__(self, name: str) -> Any:
        """What spans of the SDK have beyond the API, such as `name` and `attributes`."""
        if name in ("_span", "_context") or name.startswith(
            "__"
        ):  # asked of a copy before it has them
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


def _turn_text(turn: int) -> str:
    if not isinstance(turn, int) or isinstance(turn, bool) or not 0 <= turn < _MAX_TURNS:
        raise ValueError(
            f"turn: found {turn!r}, expected a whole number from 0 to {_MAX_TURNS - 1}"
        )
    return str(turn)


def _check_text(name: str, value: str) -> None:
    """Refuse what some carrier, or the reader, would not give back as it is."""
    if not isinstance(value, str) or not value or value != value.strip():
        raise ValueError(f"{name}: found {value!r}, expected text without white space around it")
    if value.startswith(
        '"'
    ):  # some exporters write all text as JSON, so the reader takes it for that
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
            f"{name}: found {length} characters once percent-encoded, expected at most {_MAX_CHARS}"
        )
