"""Two calls side by side: only the arguments that make the difference are marked."""

from __future__ import annotations

from pathgauge.collector.core.evidence.comparison import AlignedCall, Call
from pathgauge.collector.web.calls import MAX_ARGUMENTS, Argument, CallView, PairView, pair_view
from pathgauge.collector.web.diffs import Piece


def test_arguments_that_a_rule_accepts_are_not_marked() -> None:
    expected = Call("book", {"room": 12, "guest": {"$any": True}})
    actual = Call("book", {"room": 13, "guest": "Ada", "note": "late"})
    assert pair_view(AlignedCall("~", expected, actual, ("room",))) == PairView(
        "~",
        CallView(
            "book",
            [
                Argument("room", [Piece("12", True)], "differs"),
                Argument("guest", [Piece('{"$any": true}', False)]),
            ],
        ),
        CallView(
            "book",
            [
                Argument("room", [Piece("13", True)], "differs"),
                Argument("guest", [Piece('"Ada"', False)]),
                Argument("note", [Piece('"late"', False)]),
            ],
        ),
    )


def test_an_argument_of_one_call_alone_is_marked_as_a_whole() -> None:
    aligned = AlignedCall("~", Call("book", {}), Call("book", {"room": "big"}), ("room",))
    alone = Argument("room", [Piece('"big"', True)], "only_here")
    assert pair_view(aligned) == PairView("~", CallView("book", []), CallView("book", [alone]))


def test_calls_without_a_partner_and_without_an_object_are_shown_as_they_are() -> None:
    assert pair_view(AlignedCall("-", Call("book", None), None)) == PairView(
        "-", CallView("book"), None
    )
    unread = Call("book", "{not json")
    assert pair_view(AlignedCall("~", Call("book", {"a": 1}), unread, ("a",))) == PairView(
        "~",
        CallView("book", [Argument("a", [Piece("1", False)])]),
        CallView("book", text="{not json"),
    )


def test_arguments_beyond_a_limit_are_counted() -> None:
    many = Call("book", {str(number): number for number in range(MAX_ARGUMENTS + 5)})
    found = pair_view(AlignedCall("+", None, many)).actual
    assert found is not None
    assert (len(found.arguments or ()), found.further) == (MAX_ARGUMENTS, 5)
