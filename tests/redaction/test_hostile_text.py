"""Hostile text: eight times as much of it takes about eight times as long, whatever it repeats."""

from __future__ import annotations

import time

import pytest

from collector.redaction import KeyRule, Redactor, Rules
from collector.testing import span

SHORT, TIMES = 2_500, 8
MOST_TIMES_AS_LONG = 24
"""Three times of what is in proportion; the square of it is 64."""
MEASURABLE = 0.001

RULES = (KeyRule("*.password", "drop"), KeyRule("a*.b.c?d", "mask"))

PIECES = [
    *("a", "a@", "@a.", "a.", "a%40", "a@b.co:", "a@1.", '"@', '"a"@b.co'),
    *("4", "4 ", "4444 ", "4111111111111111:", "\uff14"),
    *("+1 ", "+4917112345678", "01 ", "(", "415-", "212-555-1234:", "(212)555-1234.", "0171/1234567:", "00", "0049 30 1234567/"),
    *("Bearer ", "Bearer+", "BEARER ", "Basic ", "Basic dXNlcjpwYXNz"),
    *("-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----END ", "://a:", "://:", "://", "sk-", "-sk-", "k_live_", "-AKIA", "-ASIA"),
    *("-ghp_", "-github_pat_", "-glpat-", "-xoxb-", "-AIza", "-ya29.", "-hf_", "-npm_"),
    *("-eyJ", "_eyJ", "eyJaaaaaaaa.", "-eyJaaaaaaaa.", "-eyJaaaaaaaa.aaaa-eyJ"),
    *("token=", "=", "= ", 'token="', "password=a1-", "password", "password\\"),
    *('"', '\\"', '"\\"', "\\", "\\u", "\\u005c", "\\x5c", "{", "{}", "}\n{", "[", "\n", "{'a': ", '{"a":'),
]


def seconds(text: str, rules: Rules) -> float:
    """Of the processor, as others may use it, too."""
    sent = [span("a", "chat", {"text": text})]
    redactor = Redactor(rules, {}, b"salt")
    begun = time.process_time()
    redactor.spans(sent)
    return time.process_time() - begun


@pytest.mark.parametrize("begin", ["", '{"password'], ids=["alone", "in an object"])
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_hostile_text_takes_time_in_proportion_to_its_size(piece: str, begin: str) -> None:
    rules = Rules(RULES)
    short, long = (begin + piece * (size // len(piece)) for size in (SHORT, SHORT * TIMES))
    times = (seconds(long, rules) / max(MEASURABLE, seconds(short, rules)) for _ in range(4))
    assert any(found <= MOST_TIMES_AS_LONG for found in times)
