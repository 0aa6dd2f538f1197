"""Hostile text: eight times as much takes about eight times as long, and nothing of it stays in
memory.
"""

from __future__ import annotations

import json
import time
import tracemalloc

import pytest

from pathgauge.collector.core.redaction import KeyRule, Redactor, Rules
from pathgauge.collector.testing import span
from support.dialects import INSTALLED

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


@pytest.mark.parametrize("begin", ["", '{"password'], ids=["alone", "in an object"])
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_hostile_text_takes_time_in_proportion_to_its_size(piece: str, begin: str) -> None:
    short, long = (begin + piece * (size // len(piece)) for size in (SHORT, SHORT * TIMES))
    assert in_proportion(short, long, Rules(RULES))


@pytest.mark.parametrize("rules", [Rules(), Rules(RULES)], ids=["detectors", "patterns"])
def test_members_below_a_long_key_take_time_in_proportion_to_their_size(rules: Rules) -> None:
    def nested(size: int) -> str:
        return json.dumps({"日" + "k" * size: dict.fromkeys(map(str, range(size // 10)), 1)})

    assert in_proportion(nested(100_000), nested(100_000 * TIMES), rules)


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
