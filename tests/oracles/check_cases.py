"""Random calls and responses for checks that need no reference, and where pathgauge means to differ
from DeepEval on them.
"""

from __future__ import annotations

import re
from random import Random

import regex

from .cases import NAMES, Case, Json, texts, trajectories
from .differences import Difference, rewritten

PATTERNS = (
    *("cat", "the cat", r"\bmat\b", "^The", "s$", "[a-z]+", "(run|ran).*", r"\d+", ".*", r"\s*\S+"),
    *("(?s).*", "今天", r"\w+ \w+", "a?", "x{40}", r"[\w\s,.-]+", r"[^\x00-\x7f]+"),
)

ALIKE: tuple[tuple[Json, ...], ...] = (
    (1, 1.0, "1"),
    (True, "True"),
    ({"p": 1, "q": [2]}, {"q": [2], "p": 1}),
    ("x", "x", "y"),
)
"""Values that are the same to some."""


def checks(random: Random) -> Case:
    """Calls of which some are repeated, allowed tools, and a response with a pattern."""
    calls = trajectories(random)["actual"]
    repeated = [random.choice(calls) for _ in range(random.randrange(9))] if calls else []
    alike = random.choice(ALIKE)
    loop = [["a", {"k": random.choice(alike)}] for _ in range(random.choice((0, 0, 4, 8)))]
    return {
        "actual": [*calls, *repeated, *loop],
        "expected": [],
        "allowed": sorted({random.choice(NAMES) for _ in range(random.randrange(4))}),
        **_response(random),
    }


def lengths(random: Random) -> Case:
    """A response with a pattern and with limits of its length."""
    return {
        **_response(random),
        "limits": {
            unit: random.choice(([None, high], [low, None], [low, low + high]))
            for unit, largest in (("chars", 60), ("words", 12))
            for low, high in [(random.randrange(largest), random.randrange(largest))]
        },
    }


def _response(random: Random) -> Case:
    return {
        "response": texts(random)["response"],
        "pattern": random.choice(PATTERNS),
        "ignore_case": random.random() < 0.5,
    }


def _as_standard_library(text: str) -> str:
    """The text, with characters that mean the same to the packages re and regex."""
    return "".join(_as_word(character) for character in text)


def _as_word(character: str) -> str:
    is_word = re.match(r"\w", character) is not None
    if is_word == (regex.match(r"\w", character) is not None):
        return character
    return "ж" if is_word else "…"


WORDS = Difference(
    "characters of words are those of the package re",
    "It takes combining marks for separators and superscripts for letters, unlike Unicode.",
    rewritten(lambda case: {**case, "response": _as_standard_library(case["response"])}),
)
ARGUMENTS_AS_TEXT = Difference(
    "arguments are compared as the text that Python writes",
    "So 1 is '1', but not 1.0, and the order of keys inside of objects counts.",
    rewritten(
        lambda case: {
            **case,
            "actual": [
                [name, {key: str(value) for key, value in arguments.items()}]
                for name, arguments in case["actual"]
            ],
        }
    ),
)
