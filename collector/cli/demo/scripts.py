"""The scripts of the example agents: for each scenario the tool calls and the answer of a scripted
language model.

A release of an agent has one script for each scenario. The regressed releases have typical faults
after a prompt change: a tool is skipped, an argument is confused, the answer is less complete.
`references/` has the correct behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pathgauge.scorers.types import Json


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of the model, and the result of the tool."""

    name: str
    arguments: Mapping[str, Json]
    result: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Script:
    """One user turn. Each round is the parallel tool calls of one model message; the answer is the
    last message.
    """

    scenario_id: str
    user_input: str
    rounds: tuple[tuple[Call, ...], ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Release:
    """A deployed version, and its behaviour in each scenario."""

    version: str
    scripts: tuple[Script, ...]


@dataclass(frozen=True, slots=True)
class ExampleAgent:
    """An agent with its first release; one that regresses also has a bad and a repaired release."""

    name: str
    model: str
    release: Release
    regressed: Release | None = None
    repaired: Release | None = None


_FLIGHT = {"from": "OSL", "to": "LIS", "date": "2026-03-14"}

_BOOK_TRIP = Script(
    "book-trip",
    "Book me a flight from Oslo to Lisbon on 14 March and a hotel for two nights.",
    (
        (
            Call("search_flights", _FLIGHT, {"flights": [{"id": "TP761", "price": 184}]}),
            Call(
                "search_hotels",
                {"city": "Lisbon", "nights": 2},
                {"hotels": [{"id": "H-202", "price": 236}]},
            ),
        ),
        (
            Call(
                "book_trip",
                {"flight": "TP761", "hotel": "H-202"},
                {"booking": "B-9001", "total": 420},
            ),
        ),
    ),
    "Your trip is booked: flight TP761 on 14 March and two nights in Lisbon for 420 euros. The"
    " booking number is B-9001.",
)
_REBOOK_FLIGHT = Script(
    "rebook-flight",
    "My flight in booking B-9001 was cancelled. Please put me on the next one.",
    (
        (Call("get_booking", {"booking": "B-9001"}, {"flight": "TP761", **_FLIGHT}),),
        (Call("search_flights", _FLIGHT, {"flights": [{"id": "TP763", "price": 0}]}),),
        (Call("rebook_flight", {"booking": "B-9001", "flight": "TP763"}, {"confirmed": True}),),
    ),
    "You are now on flight TP763 on 14 March, at no extra cost.",
)

_ORDER = {"order_id": "A-1042", "sku": "LAMP-7", "amount": 59.9, "tracking": "ZX-88120"}
_LOOKUP_ORDER = Call("lookup_order", {"order_id": "A-1042"}, _ORDER)

_REFUND_INPUT = "The lamp from order A-1042 arrived broken. I want my money back."
_REFUND = Script(
    "refund-order",
    _REFUND_INPUT,
    (
        (_LOOKUP_ORDER,),
        (
            Call(
                "check_refund_policy", {"sku": "LAMP-7", "reason": "damaged"}, {"refundable": True}
            ),
        ),
        (Call("issue_refund", {"order_id": "A-1042", "amount": 59.9}, {"refund": "R-311"}),),
    ),
    "I am sorry about the broken lamp. I have refunded 59.90 euros to your card; the refund number"
    " is R-311.",
)
_REFUND_WITHOUT_POLICY = Script(
    "refund-order",
    _REFUND_INPUT,
    (
        (_LOOKUP_ORDER,),
        (Call("issue_refund", {"order_id": "A-1042", "amount": 599}, {"refund": "R-311"}),),
    ),
    "Done, the money is on its way.",
)

_PARCEL_INPUT = "Where is order A-1042? It should have been here on Monday."
_PARCEL = Script(
    "track-parcel",
    _PARCEL_INPUT,
    (
        (_LOOKUP_ORDER,),
        (
            Call(
                "track_parcel",
                {"tracking": "ZX-88120"},
                {"status": "in transit", "eta": "Thursday"},
            ),
        ),
    ),
    "Your parcel ZX-88120 is in transit and should arrive on Thursday.",
)
_PARCEL_BY_ORDER = Script(
    "track-parcel",
    _PARCEL_INPUT,
    ((Call("track_parcel", {"tracking": "A-1042"}, {"status": "unknown"}),),),
    "I could not find your parcel. Please try again later.",
)

CONCIERGE = ExampleAgent(
    "concierge", "scripted-large", Release("3.1.0", (_BOOK_TRIP, _REBOOK_FLIGHT))
)
SUPPORT = ExampleAgent(
    "support",
    "scripted-small",
    Release("2.4.0", (_REFUND, _PARCEL)),
    regressed=Release("2.5.0", (_REFUND_WITHOUT_POLICY, _PARCEL_BY_ORDER)),
    repaired=Release("2.5.1", (_REFUND, _PARCEL)),
)
