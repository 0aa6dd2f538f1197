"""Secrets to plant, what may hide them, and spans and log records with one in every place that can
hold text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from pathgauge.collector.core.otlp.spans import LogRecord, Resource, Scope, Span
from pathgauge.collector.testing import log, span

Plant = Callable[[str], Any]

VALUES: Mapping[str, Plant] = {
    "text": lambda secret: f"write {secret} down",
    "alone": lambda secret: secret,
    "list": lambda secret: ["first", f"then {secret}"],
    "object": lambda secret: {"city": "Paris", "note": secret, "deep": {"list": [{"x": secret}]}},
    "key": lambda secret: {secret: "value"},
    "bytes": lambda secret: f"raw {secret}".encode(),
    "bytes that are no text": lambda secret: b"\xff\xfe " + secret.encode() + b" \xff",
    "json": lambda secret: json.dumps(
        {"messages": [{"role": "user", "content": f"my {secret} is"}]}
    ),
    "json key": lambda secret: json.dumps({secret: 1}),
    "json list": lambda secret: json.dumps([[["x", secret]]]),
    "json in json": lambda secret: json.dumps(json.dumps({"a": [secret]})),
    "json in json in json": lambda secret: json.dumps(
        {"a": json.dumps([json.dumps({"b": f"x\n{secret}\ty"})])}
    ),
    "json in json in an object": lambda secret: {
        "arguments": json.dumps({"inner": json.dumps({"note": secret})})
    },
    "escaped json": lambda secret: (
        '{"a": "' + "".join(f"\\u{ord(char):04x}" for char in secret) + '"}'
    ),
    "hidden by a second key": lambda secret: f'{{"a": {json.dumps(secret)}, "a": "fine"}}',
    "cut json": lambda secret: json.dumps({"a": [f"line\n{secret}\nline"]})[:-3],
    "json below a line": lambda secret: "[TOOL INPUT: x]\n" + json.dumps({"a": secret}),
    "repr": lambda secret: repr({"a": f"x\n{secret}", "b": [secret]}),
    "deep json": lambda secret: '{"a":' * 150 + json.dumps(secret) + "}" * 150,
}
"""Values that hold a text, by what hides it."""


Planted = Iterator[tuple[str, Any]]
"""Secrets, each with a value that holds it; the next one goes into the next place."""


def everywhere(secret: str, value: Any) -> Planted:
    """The same for all places."""
    return repeat((secret, value))


def spans(planted: Planted) -> Iterator[Span]:
    """A span for each place of a span."""
    secret, value = next(planted)
    yield span("name", f"chat {secret}")
    secret, value = next(planted)
    yield span("attribute", "chat", {"gen_ai.tool.call.arguments": value})
    secret, value = next(planted)
    yield span("any attribute", "chat", {"http.url": value})
    secret, value = next(planted)
    yield span("identity", "chat", {"user.id": value, "session.id": value})
    secret, value = next(planted)
    yield span("key", "chat", {secret: 1, f"http.header.{secret}": "x"})
    secret, value = next(planted)
    yield span(
        "event",
        "chat",
        events=[("gen_ai.choice", {"message": value, secret: 1}), (f"event {secret}", {})],
    )
    secret, value = next(planted)
    yield span("status", "chat", error=f"failed for {secret}")
    secret, value = next(planted)
    yield span("state", "chat", trace_state=f"vendor={secret},pathgauge=c:refund")
    secret, value = next(planted)
    yield span("resource", "chat", resource={"process.command_line": value, secret: "x"})
    secret, value = next(planted)
    yield span("scope", "chat", scope=f"scope {secret}")
    secret, value = next(planted)
    linked = span("link", "chat").proto
    link = linked.links.add(trace_state=f"vendor={secret}")
    link.attributes.extend(span("link attributes", "chat", {"link.note": value}).proto.attributes)
    yield Span(linked.SerializeToString(), Resource(), Scope())


def logs(planted: Planted) -> Iterator[LogRecord]:
    """A log record for each place of one."""
    secret, value = next(planted)
    yield log("gen_ai.user.message", {"note": value, secret: 1}, body=value)
    secret, value = next(planted)
    yield log(f"event {secret}", body={"content": value})


def email(random: random.Random) -> str:
    """An address of an example domain."""
    return (
        f"{''.join(random.choices('abcdefghijklmnopqrstuvwxyz0123456789', k=12))}@pii.example.org"
    )


def card(random: random.Random) -> str:
    """A number with a valid check digit, as people write it; it begins with 4539 17."""
    digits = "453917" + "".join(random.choices("0123456789", k=9))
    total = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[::-2]) + sum(
        map(int, digits[-2::-2])
    )
    digits += str(-total % 10)
    separator = random.choice(("", " ", "-"))
    return separator.join(digits[at : at + 4] for at in range(0, 16, 4))


def phone(random: random.Random) -> str:
    """A mobile number of Germany, +49 171."""
    return f"+49171{random.randrange(10**7, 10**8)}"


def token(random: random.Random) -> str:
    """Keys and tokens of several makers, all with SEKRET in them."""
    rest = "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=24))
    form = random.choice(
        (
            "Bearer SEKRET{}",
            "sk-proj-SEKRET{}",
            "AKIASEKRET{}",
            "ghp_SEKRET{}",
            "eyJhbGciOiJub25lIn0.SEKRET{}.x",
        )
    )
    return form.format(rest)


KINDS: Sequence[Callable[[random.Random], str]] = (email, card, phone, token)
