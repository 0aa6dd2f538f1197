"""Hostile text: eight times as much takes about eight times as long, and nothing of it stays in
memory.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest

from pathgauge.collector.core.invocations.messages.literals import MAX_LITERAL_CHARACTERS
from pathgauge.collector.core.redaction import KeyRule, Redactor, Rules
from pathgauge.collector.testing import span
from support import proportion
from support.dialects import INSTALLED
from support.hostile_literals import AROUND, INSIDE, written

SHORT, TIMES = 2_500, 8
MAX_TIMES_AS_LONG = 24
"""Three times of what is in proportion; the square of it is 64."""
MEASURABLE = 0.001

RULES = (KeyRule("*.password", "drop"), KeyRule("a*.b.c?d", "mask"))

PIECES = [
    *("a", "a@", "@a.", "a.", "a%40", "a@b.co:", "a@1.", '"@', '"a"@b.co'),
    *("4", "4 ", "4444 ", "4111111111111111:", "\uff14"),
    *(
        "+1 ",
        "+4917112345678",
        "01 ",
        "(",
        "415-",
        "212-555-1234:",
        "(212)555-1234.",
        "0171/1234567:",
        "00",
        "0049 30 1234567/",
    ),
    *("Bearer ", "Bearer+", "BEARER ", "Basic ", "Basic dXNlcjpwYXNz"),
    *(
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "-----END ",
        "://a:",
        "://:",
        "://",
        "sk-",
        "-sk-",
        "k_live_",
        "-AKIA",
        "-ASIA",
    ),
    *("-ghp_", "-github_pat_", "-glpat-", "-xoxb-", "-AIza", "-ya29.", "-hf_", "-npm_"),
    *("-eyJ", "_eyJ", "eyJaaaaaaaa.", "-eyJaaaaaaaa.", "-eyJaaaaaaaa.aaaa-eyJ"),
    *("token=", "=", "= ", 'token="', "password=a1-", "password", "password\\"),
    *(
        '"',
        '\\"',
        '"\\"',
        "\\",
        "\\u",
        "\\u005c",
        "\\x5c",
        "{",
        "{}",
        "}\n{",
        "[",
        "\n",
        "{'a': ",
        '{"a":',
    ),
]


REDACTOR = Redactor(Rules(RULES), {}, b"salt", INSTALLED)
ARGUMENTS = "gen_ai.tool.call.arguments"


def seconds(text: str, rules: Rules) -> float:
    """Of the processor, as others may use it, too."""
    sent = [span("a", "chat", {"text": text})]
    redactor = Redactor(rules, {}, b"salt", INSTALLED)
    begun = time.process_time()
    redactor.spans(sent)
    return time.process_time() - begun


def in_proportion(short: str, long: str, rules: Rules) -> bool:
    times = (seconds(long, rules) / max(MEASURABLE, seconds(short, rules)) for _ in range(4))
    return any(found <= MAX_TIMES_AS_LONG for found in times)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("begin", ["", '{"password'], ids=["alone", "in an object"])
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_hostile_text_takes_time_in_proportion_to_its_size(piece: str, begin: str) -> None:
    short, long = (begin + piece * (size // len(piece)) for size in (SHORT, SHORT * TIMES))
    assert in_proportion(short, long, Rules(RULES))


@pytest.mark.slow
@pytest.mark.parametrize("rules", [Rules(), Rules(RULES)], ids=["detectors", "patterns"])
def test_members_below_a_long_key_take_time_in_proportion_to_their_size(rules: Rules) -> None:
    def nested(size: int) -> str:
        return json.dumps({"日" + "k" * size: dict.fromkeys(map(str, range(size // 10)), 1)})

    assert in_proportion(nested(100_000), nested(100_000 * TIMES), rules)


def redact(attributes: dict[str, Any]) -> None:
    REDACTOR.spans([span("a", "chat", attributes)])


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("construct", INSIDE)
def test_text_like_a_python_literal_takes_time_in_proportion_to_its_size(
    construct: str, around: str
) -> None:
    def attributes(size: int) -> dict[str, Any]:
        text = written(construct, around, size)
        return {ARGUMENTS: text.encode(errors="replace").decode()}

    assert proportion.in_proportion(attributes, redact, 4_096)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("construct", INSIDE)
def test_the_longest_text_like_a_python_literal_takes_time_in_proportion_to_its_size(
    construct: str, around: str
) -> None:
    def attributes(size: int) -> dict[str, Any]:
        text = written(construct, around, size)
        return {ARGUMENTS: text.encode(errors="replace").decode()}

    assert proportion.in_proportion(attributes, redact, MAX_LITERAL_CHARACTERS)


STRUCTURES: dict[str, Callable[[int], Any]] = {
    "members of which the first half is dropped": lambda size: {
        f"{key}.password" if key < size // 2 else f"{key}": 0 for key in range(size)
    },
    "objects of which half lose their members": lambda size: (
        [{"password": 1}, {"a": 1}] * (size // 2)
    ),
    "objects in text that lose their members": lambda size: json.dumps([{"password": 1}] * size),
    "texts in texts": lambda size: reduce(lambda text, _: json.dumps(text), range(8), "x" * size),
    "lists in texts in lists": lambda size: reduce(
        lambda text, _: json.dumps([text]), range(8), "a@b.co " * (size // 7)
    ),
    "lists 90 deep": lambda size: "[" + ",".join(["[" * 90 + "1" + "]" * 90] * (size // 180)) + "]",
    "addresses as keys": lambda size: json.dumps({f"k{key}@b.co": 0 for key in range(size // 12)}),
    "lines of JSON": lambda size: '{"password": "b"}\n' * (size // 18),
    "a line before JSON, in a line before JSON": lambda size: reduce(
        lambda text, _: "x\n" + json.dumps({"a": text}), range(8), "x" * size
    ),
    "card numbers": lambda size: json.dumps([4111111111111111] * (size // 18)),
    "bytes": lambda size: b"\xff4444 " * (size // 6),
}


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_any_structure_takes_time_in_proportion_to_its_size(structure: str) -> None:
    def attributes(size: int) -> dict[str, Any]:
        return {ARGUMENTS: {"a": STRUCTURES[structure](size)}}

    assert proportion.in_proportion(attributes, redact, 60_000)


@pytest.mark.slow
def test_keys_are_not_kept_in_memory() -> None:
    redactor = Redactor(Rules(RULES), {}, b"salt", INSTALLED)
    tracemalloc.start()
    for length in (200, 3_000, 50_000):
        redactor.spans(
            [
                span(
                    "a",
                    "chat",
                    {"text": json.dumps({"k" * length: dict.fromkeys(map(str, range(5000)), 1)})},
                )
            ]
        )
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 3_000_000
