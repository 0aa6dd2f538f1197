"""What every scorer meets in production: the inputs of the contract tests."""

from __future__ import annotations

import math

from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    invocation,
    reference_turn,
    tool_call,
)
from pathgauge.scorers.authoring.extras import SpanRecord
from pathgauge.scorers.matching.matchers import (
    AnyOrder,
    Anything,
    AtLeast,
    Ignored,
    Near,
    OneOf,
    Pattern,
)
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.types import (
    ExpectedCall,
    Invocation,
    ModelCall,
    Reference,
    ReferenceTurn,
    ToolCall,
)

Situation = tuple[Invocation, ReferenceTurn | None]
"""The arguments of `Scorer.score`."""
Session = tuple[tuple[SessionTurn, ...], Reference | None]
"""The arguments of `SessionScorer.score_session`."""

_MANY = 2_000


def situations() -> tuple[Situation, ...]:
    """Matching and missing data, large data, and telemetry with gaps."""
    nested = tool_call(
        "book", room={"beds": 2, "view": None}, dates=["2026-01-01", 1.0, True, math.nan]
    )
    expected = reference_turn(
        expected_call("search", q="tea"), ExpectedCall("book"), response="Here you are: two rooms."
    )
    actual = invocation(tool_call("search", q="tea"), nested, final_response="Two rooms are free.")
    lenient = _lenient_turn()
    # One object many times, because copying and comparing separate calls takes most of the time.
    many_calls = (tool_call("search"),) * _MANY
    return (
        (actual, expected),
        (actual, None),
        (actual, ReferenceTurn()),
        (actual, reference_turn(response="")),
        (invocation(), expected),
        (invocation(), reference_turn()),
        (invocation(ToolCall("search"), ToolCall("book", "{not json")), expected),
        (invocation(ToolCall(" search\n", '"{\\"q\\": \\"tea\\"}"', error="timeout")), expected),
        (invocation(final_response="", error=True, error_type="ValueError"), expected),
        (Invocation("t", "s", "test"), expected),
        (
            invocation(flags=frozenset({"no_tool_spans", "content_missing"}), final_response=None),
            expected,
        ),
        (invocation(flags=frozenset({"dropped_spans"})), expected),
        (invocation(final_response="お茶 👍 สวัสดี"), reference_turn(response="👍")),
        (actual, lenient),
        (invocation(*reversed(actual.tool_calls)), lenient),
        (invocation(ToolCall("book", group=1), ToolCall("search", group=1)), lenient),
        (invocation(tool_call("search", q="tea " * 5 * _MANY)), lenient),
        (invocation(*many_calls, final_response="tea " * _MANY), expected),
        (
            invocation(*many_calls, *many_calls, final_response="tea " * 40 * _MANY),
            expected,
        ),
        (_with_extras(), expected),
    )


def _with_extras() -> Invocation:
    """An invocation with spans, and with tokens and texts of its model calls."""
    models = (
        ModelCall("3", None, None, "model-1", 100, 10, cached_tokens=90, text="Let me search."),
        ModelCall("4", None, None, "model-2", 0, 7, text="Two rooms for 120.50 EUR are free."),
    )
    spans = (
        SpanRecord("1", None, "agent", "ok", 0, 1_500_000_000),
        SpanRecord("2", "1", "", "error", 0, None, {"a": [1, None]}, ("b",)),
        SpanRecord("2", "5", "orphan", "unset", None, 3, {"a": math.nan}),
    )
    return invocation(tool_call("search"), model_calls=models, spans=spans, user_input="120.50?")


def _lenient_turn() -> ReferenceTurn:
    """A reference turn with matchers, alternatives, groups and forbidden calls."""
    search = expected_call("search", q=OneOf([Pattern("te.*"), Ignored()]))
    book = ExpectedCall("book", {"room": AtLeast({"beds": Near(2)}), "dates": Anything()}, group=1)
    mail = ExpectedCall("mail", {"to": AnyOrder(["me", Anything()])}, optional=True, group=1)
    return ReferenceTurn(
        tool_calls=(search, book, mail),
        alternatives=((book, search), expected_calls("search")),
        forbidden=(expected_call("book", room=Ignored()),),
        response_contains=("room",),
        expected_agent="hotel",
        escalate=False,
    )


def sessions() -> tuple[Session, ...]:
    """The same for scorers of sessions."""
    actual, expected = situations()[0]
    scored = SessionTurn(actual, {"latency": 0.5, "other": None})
    bare = SessionTurn(Invocation("t", "s", "test"))
    lost = SessionTurn(invocation(flags=frozenset({"dropped_spans"})))
    ended = SessionTurn(invocation(user_input="tea?", session_end="resolved"))
    turn = expected or ReferenceTurn()
    two = Reference("scenario", (turn, _lenient_turn()))
    return (
        ((scored,), Reference("scenario", (turn,))),
        ((scored, ended), two),
        ((scored, ended, ended), None),
        ((bare, lost), two),
        ((bare, lost), None),
        ((lost, scored), Reference("scenario", (turn, ReferenceTurn()))),
        ((scored,) * 40, two),
    )
