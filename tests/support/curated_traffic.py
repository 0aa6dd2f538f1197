"""Runs of scenarios whose good behaviour varies, with labelled bad runs among them.

The learner was developed with these scenarios; `held_out_traffic` has others. Each run is a script
for the agent of `pathgauge demo`, so that it arrives as real spans.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pathgauge.collector.cli.demo.scripts import Call, Script

Args = Mapping[str, Any]
Calls = list[tuple[str, dict[str, Any]]]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Period:
    """When the runs happen: values differ between periods, behaviour does not."""

    year: int
    first_id: int
    first_names: tuple[str, ...]
    last_names: tuple[str, ...]


BEFORE = Period(
    2026,
    10_000,
    ("Anna", "Luís", "Mei", "Omar", "Eva", "Finn", "Nadia", "Paul"),
    ("Berg", "Pinto", "Chen", "Haddad", "Novák", "O'Neill", "Rossi", "van Dijk"),
)
LATER = Period(
    2027,
    40_000,
    ("Tom", "Inès", "Jürgen", "Aiko", "Zoë", "Lars", "Mona", "Raj"),
    ("Fry", "Roca", "Groß", "Sato", "Klein", "Lund-Berg", "Okafor", "Das"),
)


class Maker:
    """Makes values of one run."""

    def __init__(self, seed: int, period: Period) -> None:
        self.random = random.Random(seed)
        self.period = period

    def number(self, digits: int = 5) -> str:
        low = self.period.first_id % 10**digits
        return f"{self.random.randrange(low, 10**digits):0{digits}d}"

    def date(self) -> str:
        return (
            f"{self.period.year}-{self.random.randint(1, 12):02d}-{self.random.randint(1, 28):02d}"
        )

    def time(self) -> str:
        return (
            f"{self.date()}T{self.random.randint(7, 19):02d}:{self.random.choice((0, 30)):02d}:00Z"
        )

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def amount(self, low: float, high: float) -> float:
        return round(self.random.uniform(low, high), 2)

    def name(self) -> str:
        return f"{self.pick(*self.period.first_names)} {self.pick(*self.period.last_names)}"

    def email(self) -> str:
        user = self.name().split()[0].lower().encode("ascii", "ignore").decode()
        return f"{user}{self.random.randrange(1000)}@{self.pick('example.com', 'mail.example.org')}"

    def code(self, length: int) -> str:
        return "".join(self.random.choices("0123456789ABCDEFGHJKLMNPQRSTUVWXYZ", k=length))

    def text(self) -> str:
        about = self.pick("the lamp", "a delivery", "the invoice", "an update", "the trip")
        return f"{self.name()} asks about {about} of {self.date()}, {self.code(6)}."

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def shuffled(self, items: list[_T]) -> list[_T]:
        return self.random.sample(items, len(items))


def refund(m: Maker) -> tuple[Calls, str]:
    order = f"ORD-{m.number()}"
    checks: Calls = [
        (
            "check_policy",
            {
                "sku": f"{m.pick('LAMP', 'DESK', 'SOFA')}-{m.number(2)}",
                "reason": m.pick("damaged", "late", "wrong_item", "unwanted"),
            },
        ),
    ]
    if m.chance(0.4):
        checks.append(("verify_identity", {"email": m.email()}))
    calls: Calls = [("lookup_order", {"order_id": order}), *m.shuffled(checks)]
    if m.chance(0.25):
        calls.append(("escalate", {"queue": m.pick("returns", "fraud"), "note": m.text()}))
        return calls, f"A colleague will look at your refund of order {order}."
    amount = m.amount(5, 480)
    refunded = {"order_id": order, "amount": amount, "currency": m.pick("EUR", "EUR", "SEK")}
    calls.append(("issue_refund", refunded))
    return calls, m.pick(
        f"Done: the refund of {amount} for order {order} is on its way.",
        f"Your refund for order {order} is on its way, {amount} in all.",
    )


def trip(m: Maker) -> tuple[Calls, str]:
    day, city = m.date(), m.pick("Lisbon", "New York", "Oslo", "Köln", "São Paulo", "Rome")
    searches: Calls = [
        (
            "search_flights",
            {
                "from": m.pick("OSL", "CPH", "ARN"),
                "to": m.pick("LIS", "JFK", "CGN"),
                "date": day,
                "passengers": m.pick(1, 1, 2, 2, 3),
            },
        ),
        ("search_hotels", {"city": city, "check_in": day, "nights": m.random.randint(1, 14)}),
    ]
    calls = m.shuffled(searches)
    if m.chance(0.3):
        calls.append(("get_weather", {"city": city, "date": day}))
    flight, hotel = f"{m.pick('TP', 'SK', 'LH')}{m.number(3)}", f"H-{m.number(4)}"
    calls.append(("book_trip", {"flight": flight, "hotel": hotel}))
    return calls, m.pick(
        f"Your trip is booked: flight {flight} and hotel {hotel}.",
        f"I have booked everything. Your trip is booked with {flight}, staying at {hotel}.",
    )


def appointment(m: Maker) -> tuple[Calls, str]:
    department, patient = m.pick("cardiology", "dermatology", "radiology"), m.name()
    calls: Calls = [("find_slots", {"department": department, "from": m.date()})]
    if m.chance(0.3):
        calls.append(("join_waitlist", {"patient": patient, "department": department}))
        return calls, f"{patient} is on the waiting list for an appointment."
    slot = m.uuid()
    calls += [("hold_slot", {"slot": slot}), ("confirm", {"slot": slot, "patient": patient})]
    if m.chance(0.5):
        reminder = {"channel": m.pick("sms", "email"), "at": m.time()}
        calls.append(("send_reminder", reminder))
    return calls, m.pick(
        f"The appointment of {patient} is confirmed.", f"{patient}, your appointment is fixed."
    )


def knowledge(m: Maker) -> tuple[Calls, str]:
    searches = m.pick(1, 1, 2, 3)
    calls: Calls = [("search", {"query": m.text(), "top_k": 5}) for _ in range(searches)]
    calls.append(("open_article", {"id": f"KB-{m.number(4)}"}))
    if m.chance(0.35):
        calls.append(("rate_article", {"stars": m.random.randint(3, 5)}))
    return calls, f"According to our help pages, {m.text()}"


def incident(m: Maker) -> tuple[Calls, str]:
    service = m.pick("checkout", "search", "login", "mail")
    calls: Calls = [("get_metrics", {"service": service, "window": m.pick("5m", "1h")})]
    if m.chance(0.45):
        calls.append(("scale", {"service": service, "replicas": m.random.randint(2, 6)}))
    else:
        calls.append(("read_logs", {"service": service, "lines": m.pick(100, 500)}))
        calls.append(("restart", {"service": service, "graceful": m.chance(0.6)}))
    if m.chance(0.3):
        calls.append(("open_ticket", {"title": m.text(), "labels": m.shuffled(["ops", "auto"])}))
    calls.append(("post_status", {"channel": "#ops", "message": m.text()}))
    return calls, f"{service} is healthy again; the status page says so."


def invoice(m: Maker) -> tuple[Calls, str]:
    number = f"INV-{m.period.year}-{m.number(4)}"
    fetches: Calls = [
        ("fetch_invoice", {"invoice": number}),
        ("fetch_order", {"po": f"PO{m.number(5)}{m.number(2)}"}),
    ]
    calls = m.shuffled(fetches)
    amount = m.amount(90, 25_000)
    if m.chance(0.35):
        rate = {"amount": amount, "from": m.pick("USD", "GBP", "CHF"), "to": "EUR"}
        calls.append(("convert_currency", rate))
    if m.chance(0.3):
        reason = m.pick("amount_differs", "no_delivery", "unknown_supplier")
        calls.append(("flag_dispute", {"invoice": number, "reason": reason}))
        return calls, f"Invoice {number} is disputed."
    iban = f"{m.pick('DE', 'NO', 'FR')}{m.number(2)} {m.number(4)} {m.number(4)} {m.number(4)}"
    calls.append(("approve_payment", {"invoice": number, "amount": amount, "iban": iban}))
    return calls, f"I have approved the payment of invoice {number}: {amount} euros."


def onboarding(m: Maker) -> tuple[Calls, str]:
    email, user = m.email(), m.uuid()
    calls: Calls = [
        (
            "create_account",
            {"email": email, "full_name": m.name(), "plan": m.pick("free", "team", "enterprise")},
        ),
    ]
    followups: Calls = [
        ("assign_seat", {"user_id": user, "team": m.pick("sales", "support", "legal", "it")}),
        ("set_locale", {"user_id": user, "locale": m.pick("en-GB", "de-DE", "pt-BR")}),
    ]
    calls += m.shuffled(followups)
    if m.chance(0.25):
        calls.append(("enable_sso", {"domain": email.split("@")[1], "enforced": m.chance(0.5)}))
    calls.append(("send_welcome", {"email": email, "template": "welcome-v2"}))
    return calls, m.pick(
        f"The account for {email} is ready, and the welcome mail is sent.",
        f"Done. {email} has received the welcome mail; the account is ready.",
    )


def parcel(m: Maker) -> tuple[Calls, str]:
    tracking = f"1Z{m.code(12)}"
    address = {
        "street": f"{m.name()} Road {m.random.randint(1, 240)}",
        "zip": m.number(5),
        "country": m.pick("NO", "SE", "DK"),
    }
    first: Calls = [
        ("lookup_shipment", {"tracking": tracking}),
        ("geocode", {"address": address}),
    ]
    calls = m.shuffled(first)
    day = m.date()
    calls.append(
        (
            "reschedule",
            {"tracking": tracking, "date": day, "window": m.pick([8, 12], [12, 16], [16, 20])},
        )
    )
    if m.chance(0.4):
        calls.append(("notify_driver", {"depot": f"D{m.number(2)}", "note": m.text()}))
    return calls, m.pick(
        f"Your parcel arrives on {day}.", f"We moved it: your parcel arrives on {day} instead."
    )


def loan(m: Maker) -> tuple[Calls, str]:
    customer = f"C-{m.number(5)}"
    calls: Calls = [
        ("get_credit_score", {"customer": customer, "bureau": m.pick("north", "south")}),
        ("get_income", {"customer": customer, "months": 12}),
    ]
    for _ in range(m.pick(1, 1, 2)):
        wanted = {
            "amount": m.random.randrange(2_000, 60_000, 500),
            "months": m.pick(12, 24, 36, 60),
            "rate": round(m.random.uniform(3, 9), 2),
        }
        calls.append(("simulate_loan", wanted))
    if m.chance(0.35):
        calls.append(("decline", {"customer": customer, "reason": m.pick("income", "score")}))
        return calls, f"We cannot offer a loan to {customer} at the moment."
    valid = {"customer": customer, "valid_until": m.date()}
    calls.append(("create_offer", valid))
    return calls, f"The offer of a loan for {customer} is ready to be signed."


def report(m: Maker) -> tuple[Calls, str]:
    month = m.date()[:7]
    sql = f"select {m.pick('sum', 'avg')}(total) from sales where month = '{month}'"
    calls: Calls = [("run_query", {"sql": sql, "limit": 1000})]
    if m.chance(0.5):
        columns = m.pick(["month", "total"], ["region", "total", "share"], ["sku", "count"])
        calls.append(("make_chart", {"kind": m.pick("bar", "line"), "columns": columns}))
    path = f"reports/{month}/{m.code(8).lower()}.pdf"
    calls.append(("upload", {"path": path, "public": False}))
    link = f"https://files.example.com/{m.code(10)}"
    calls.append(("post_message", {"channel": m.pick("#sales", "#board"), "url": link}))
    if m.chance(0.25):
        calls.append(("schedule", {"at": m.time(), "repeat": m.pick("weekly", "monthly")}))
    return calls, f"The report for {month} is uploaded: {link}"


def music(m: Maker) -> tuple[Calls, str]:
    mood = m.pick("calm", "party", "focus")
    calls: Calls = [("get_profile", {"user": f"u_{m.code(9).lower()}"})]
    calls += m.shuffled(
        [
            ("find_tracks", {"mood": mood, "bpm": m.random.randint(60, 180)}),
            ("recent_plays", {"limit": 50, "since": m.date()}),
        ]
    )
    if m.chance(0.45):
        calls.append(("exclude_artists", {"names": [m.name() for _ in range(m.pick(1, 2, 3))]}))
    calls.append(("create_playlist", {"title": f"{mood} for {m.name()}", "public": m.chance(0.2)}))
    return calls, m.pick("Your new playlist is waiting.", "I made a new playlist for you!")


def heating(m: Maker) -> tuple[Calls, str]:
    room = m.pick("kitchen", "bath", "office", "hall", "attic")
    calls: Calls = [("read_sensor", {"room": room, "kind": "temperature"})]
    if m.chance(0.5):
        calls.append(("set_target", {"room": room, "celsius": m.amount(17, 24)}))
        if m.chance(0.5):
            calls.append(("set_schedule", {"room": room, "from": "22:00", "to": "06:30"}))
    else:
        calls.append(("open_valve", {"valve": m.random.randint(1, 40), "percent": m.pick(25, 50)}))
        calls.append(("read_sensor", {"room": room, "kind": "flow"}))
    return calls, f"The heating of the {room} is set."


def expense(m: Maker) -> tuple[Calls, str]:
    cents = m.random.randint(300, 90_000)
    receipt = {"total": {"cents": cents, "currency": m.pick("EUR", "USD")}, "date": m.date()}
    calls: Calls = [("read_receipt", {"file": f"IMG_{m.number(4)}.jpg"})]
    if m.chance(0.3):
        calls.append(("ask_category", {"merchant": f"{m.name()} & Sons"}))
    calls.append(
        ("file_expense", {"receipt": receipt, "category": m.pick("meals", "travel", "it")})
    )
    if m.chance(0.4):
        calls.append(("request_approval", {"manager": m.email(), "urgent": m.chance(0.3)}))
        return calls, "Your expense is filed and waits for approval."
    calls.append(("schedule_payout", {"on": m.date(), "account": f"****{m.number(4)}"}))
    return calls, "Your expense is filed and will be paid out."


def deploy(m: Maker) -> tuple[Calls, str]:
    version = f"v{m.random.randint(1, 9)}.{m.random.randint(0, 30)}.{m.random.randint(0, 30)}"
    commit = f"{m.random.getrandbits(160):040x}"
    calls: Calls = [("get_commit", {"sha": commit, "repo": m.pick("shop", "api", "docs")})]
    calls += m.shuffled(
        [
            ("run_tests", {"sha": commit, "suite": m.pick("unit", "all")}),
            ("scan_image", {"image": f"registry.example.com/app:{version}"}),
        ]
    )
    if m.chance(0.25):
        calls.append(("freeze", {"until": m.time(), "reason": m.text()}))
        return calls, f"The release of {version} is stopped by the checks."
    calls.append(("roll_out", {"version": version, "share": m.pick(0.05, 0.25, 1.0)}))
    return calls, f"The release of {version} is on its way."


def survey(m: Maker) -> tuple[Calls, str]:
    calls: Calls = [("open_survey", {"id": m.random.randint(100_000, 999_999)})]
    for _ in range(m.pick(2, 2, 3, 4)):
        calls.append(("save_answer", {"score": m.random.randint(1, 10), "comment": m.text()}))
    if m.chance(0.3):
        calls.append(("attach_photo", {"size_kb": m.random.randint(20, 9000), "alt": m.name()}))
    calls.append(("submit", {"locale": m.pick("en", "de", "fr"), "consent": True}))
    return calls, m.pick("Thanks, the survey is complete.", "The survey is complete. Thank you!")


Behaviour = Callable[[Maker], tuple[Calls, str]]
TUNING: Sequence[Behaviour] = (
    *(refund, trip, appointment, knowledge, incident),
    *(invoice, onboarding, parcel, loan, report),
    *(music, heating, expense, deploy, survey),
)
REPEATED = frozenset({"search", "simulate_loan", "save_answer", "add_item"})
"""Tools that good runs call more than once."""
OPTIONAL = frozenset(
    {
        "verify_identity",
        "get_weather",
        "send_reminder",
        "rate_article",
        "open_ticket",
        "convert_currency",
        "enable_sso",
        "notify_driver",
        "make_chart",
        "schedule",
        "exclude_artists",
        "set_schedule",
        "ask_category",
        "attach_photo",
        "apply_voucher",
        "load_glossary",
        "print_label",
        "assign",
        "remind",
    }
)
"""Tools that good runs may leave out."""


@dataclass(frozen=True)
class Labelled:
    """A run, and how it is bad; "": it is good."""

    script: Script
    bad: str


def labelled(
    behaviour: Behaviour,
    count: int,
    seed: int,
    period: Period,
    bad_share: float,
    *,
    kinds: Sequence[str] = (),
) -> list[Labelled]:
    """Runs in random order, of which this share is bad, in these ways or in all."""
    shuffled = random.Random(seed)
    bad = [shuffled.choice(kinds or sorted(BAD)) for _ in range(round(count * bad_share))]
    labels = [*bad, *[""] * (count - len(bad))]
    shuffled.shuffle(labels)
    return [
        _run(behaviour, Maker(seed * 1_000_003 + number, period), kind)
        for number, kind in enumerate(labels)
    ]


def _run(behaviour: Behaviour, m: Maker, kind: str) -> Labelled:
    calls, answer = behaviour(m)
    if kind:
        calls, answer = BAD[kind](m, calls, answer)
    rounds = tuple((Call(name, args, {"ok": True}),) for name, args in calls)
    name = behaviour.__name__
    return Labelled(Script(name, f"Please: {name} for {m.name()}", rounds, answer), kind)


Spoil = Callable[[Maker, Calls, str], tuple[Calls, str]]


def skips_a_step(m: Maker, calls: Calls, answer: str) -> tuple[Calls, str]:
    at = m.pick(*(at for at, (name, _) in enumerate(calls) if name not in REPEATED | OPTIONAL))
    return [*calls[:at], *calls[at + 1 :]], answer


def takes_another_tool(m: Maker, calls: Calls, answer: str) -> tuple[Calls, str]:
    at = m.random.randrange(len(calls))
    tool, args = calls[at]
    return [*calls[:at], (f"{tool}_v1", args), *calls[at + 1 :]], answer


def does_not_answer(m: Maker, calls: Calls, answer: str) -> tuple[Calls, str]:
    return calls, ""


def calls_a_foreign_tool(m: Maker, calls: Calls, answer: str) -> tuple[Calls, str]:
    at = m.random.randint(0, len(calls))
    foreign = m.pick(("delete_account", {"confirm": True}), ("web_search", {"q": m.text()}))
    return [*calls[:at], foreign, *calls[at:]], answer


def repeats_a_call(m: Maker, calls: Calls, answer: str) -> tuple[Calls, str]:
    at = m.pick(*(at for at, (name, _) in enumerate(calls) if name not in REPEATED))
    return [*calls[: at + 1], calls[at], *calls[at + 1 :]], answer


def acts_too_early(m: Maker, calls: Calls, answer: str) -> tuple[Calls, str]:
    return [calls[-1], *calls[:-1]], answer


def leaves_out_an_argument(m: Maker, calls: Calls, answer: str) -> tuple[Calls, str]:
    return _with(m, calls, lambda name, value: None), answer


def invents_an_argument(m: Maker, calls: Calls, answer: str) -> tuple[Calls, str]:
    at = m.random.randrange(len(calls))
    name, args = calls[at]
    return [*calls[:at], (name, {**args, "force": True}), *calls[at + 1 :]], answer


def confuses_a_value(m: Maker, calls: Calls, answer: str) -> tuple[Calls, str]:
    def confused(name: str, value: Any) -> Any:
        if isinstance(value, bool):
            return "yes"
        if isinstance(value, int | float):
            return m.pick(-value, value * 1000, str(value))
        if isinstance(value, str):
            return m.pick("", None, 17, *[] if " " in value else ["unknown"])
        return m.pick([], "unknown", None)

    return _with(m, calls, lambda name, value: {name: confused(name, value)}), answer


def gives_up(m: Maker, calls: Calls, answer: str) -> tuple[Calls, str]:
    return calls[:1], "Sorry, I am unable to help with that right now."


BAD: Mapping[str, Spoil] = {
    spoil.__name__: spoil
    for spoil in (
        skips_a_step,
        takes_another_tool,
        does_not_answer,
        calls_a_foreign_tool,
        repeats_a_call,
        acts_too_early,
        leaves_out_an_argument,
        invents_an_argument,
        confuses_a_value,
        gives_up,
    )
}


def _with(m: Maker, calls: Calls, changed: Callable[[str, Any], dict[str, Any] | None]) -> Calls:
    """The calls with one argument changed, or left out."""
    at = m.random.randrange(len(calls))
    tool, args = calls[at]
    name = m.pick(*args)
    new = changed(name, args[name])
    rest = {key: value for key, value in args.items() if key != name}
    return [*calls[:at], (tool, {**rest, **(new or {})}), *calls[at + 1 :]]


def in_scenario(run: Labelled, scenario_id: str) -> Labelled:
    """The same run in another scenario; "": in none."""
    return replace(run, script=replace(run.script, scenario_id=scenario_id))
