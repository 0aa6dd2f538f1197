"""Random cases to score: a seed and a number come in, a case that is the same on every machine and
every Python goes out.

A case is JSON, and so are the arguments of its calls: `{"actual": [[tool, arguments], ...],
"expected": [...]}` for trajectories, `{"response": ..., "reference": ...}` for texts. Only
`random`, `randrange` and `choice` are asked for chance: what they return for a seed has not changed
in years.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

Json = Any
Case = dict[str, Any]
Call = list[Any]
"""Tool and arguments."""

_T = TypeVar("_T")

NAMES = ("a", "a", "a", "b", "b", "c", "A")
BLANKS = (" ", "\t")
KEYS = ("k", "l", "m")
PORTABLE: tuple[Json, ...] = (
    "x",
    "y",
    7,
    2.5,
    {"p": 1, "q": [1, 2]},
    {"q": [1, 2], "p": 1},
    {"p": 1},
    [1, 2],
    [2, 1],
)
HARD: tuple[Json, ...] = (
    *(1, 1.0, True, "1", [True], [1.0], {"p": False}, {"p": 0}),
    *(0, -0.0, False, None, None, None, "", [], {}),
    *(math.nan, math.nan, [math.nan], 2**53 + 1, float(2**53), "é", "e\u0301"),
)
SPARSE = 0.15
"""The share of calls that have no arguments at all, not even none, in sparse cases."""

WORDS = (
    *(
        "the",
        "The",
        "cat",
        "cats",
        "mat",
        "MAT",
        "run",
        "runs",
        "running",
        "ran",
        "happily",
        "happy",
        "flies",
        "dies",
        "ties",
    ),
    *(
        "tool_name",
        "1,000",
        "1000",
        "3.14",
        "It's",
        "don't",
        "e-mail",
        "http://x.org/?q=1",
        "x" * 40,
        "a",
        "I",
        "generalizations",
    ),
    *(
        "&amp;",
        "&quot;",
        "a&lt;b",
        "1-2",
        "non-\nsense",
        "-",
        "$5.00",
        "(x,y)",
        "[1.]",
        "5,",
        ".5",
        "<skipped>",
        "!",
        "?",
    ),
)
LONG_WORDS = ("internationalization" * 2, "internationalization" * 2 + "s")
"""Two words with the same stem."""
SIGNS = ("!", "?", "-", "...", "$", "(", "*")
SCRIPTS = (
    *(
        "Погода",
        "погода",
        "größer",
        "Straße",
        "café",
        "cafe\u0301",
        "ﬁne",
        "ＡＢＣ１２３",
        "abc123",
        "naïve",
        "İstanbul",
        "ΣΊΣΥΦΟΣ",
        "نعم",
    ),
    *(
        "今天天气很好",
        "今天下雨",
        "テスト",
        "ﾃｽﾄ",
        "한국어",
        "สวัสดี",
        "ครับ",
        "မြန်မာ",
        "ខ្មែរ",
        "ລາວ",
        "नमस्ते",
        "दुनिया",
        "ⅷ",
        "²",
        "½",
    ),
    *("cats今天dogs", "สวัสดีcats", "4K画质", "ABCＡＢＣ", "runningです", "größerな", "éclairs"),
    *("👍", "👩\u200d💻", "—", "…", "\u00a0", "\u200b"),
)
SEPARATORS = (" ", " ", " ", "  ", "\n", ", ", ". ", "-")


def trajectories(random: Random) -> Case:
    """Expected calls, and actual ones that mostly are those with up to three changes; all have
    arguments.
    """
    return _trajectories(random, sparse=0)


def sparse_trajectories(random: Random) -> Case:
    """The same, where some calls have `null` in place of arguments."""
    return _trajectories(random, sparse=SPARSE)


def partial_orders(random: Random) -> Case:
    """Trajectories with optional calls, with calls that may come in any order (`groups`), and with
    calls of one message (`messages`).
    """
    case = trajectories(random)
    grouped = random.random() < 0.6
    groups = [random.choice((None, 0, 0, 1)) if grouped else None for _ in case["expected"]]
    optional = [random.random() < 0.3 for _ in case["expected"]]
    return {
        **case,
        "groups": groups,
        "optional": optional,
        "messages": [random.choice((None, 0, 0, 1)) for _ in case["actual"]],
    }


def messages(random: Random) -> Case:
    """Trajectories whose calls belong to messages, mostly to as many as are expected (`groups`)."""
    case = trajectories(random)
    groups = _shape(random, len(case["expected"]))
    same = [*groups, *range(100, 100 + len(case["actual"]))][: len(case["actual"])]
    return {
        **case,
        "groups": groups,
        "messages": same if random.random() < 0.8 else _shape(random, len(case["actual"])),
    }


def ascii_texts(random: Random) -> Case:
    """A reference in English or of signs, and a response that mostly shares some words."""
    return _texts(random, random.choice((WORDS, WORDS, WORDS, WORDS, SIGNS)))


def texts(random: Random) -> Case:
    """The same in many scripts."""
    return _texts(
        random, random.choice((WORDS, (*WORDS, *SCRIPTS), SCRIPTS, SCRIPTS, (*SIGNS, "👍", "…")))
    )


def judgements(random: Random) -> Case:
    """Samples of what a judge says: a label, and verdicts on rubrics; or what cannot be read, or
    nothing.
    """
    share, rubrics = random.choice((0.0, 0.1, 0.4)), random.randrange(1, 5)
    lost = [
        random.choice(("junk", "junk", "failed")) if random.random() < share else None
        for _ in range(random.randrange(1, 8))
    ]
    labels = [sample or random.choice(("valid", "valid", "invalid")) for sample in lost]
    verdicts = ("yes", "yes", "no", "not_applicable")
    return {
        "labels": labels,
        "rubrics": rubrics,
        "ratings": [sample or [random.choice(verdicts) for _ in range(rubrics)] for sample in lost],
    }


def _trajectories(random: Random, sparse: float) -> Case:
    values = PORTABLE if random.random() < 0.4 else HARD
    pool = (
        _nested(random, values)
        if random.random() < 0.25
        else [_call(random, values, sparse) for _ in range(random.choice((2, 4, 12)))]
    )
    expected = [
        _near(random, pool, values) if random.random() < 0.3 else random.choice(pool)
        for _ in range(random.randrange(7))
    ]
    actual = _mutated(random, expected, lambda: _near(random, pool, values))
    return {"actual": [_respelled(random, call, values) for call in actual], "expected": expected}


def _shape(random: Random, length: int) -> list[int]:
    """Ascending numbers, some of them several times."""
    shape: list[int] = []
    for _ in range(length):
        shape.append((shape[-1] if shape else 0) + random.choice((0, 0, 1)))
    return shape


def _call(random: Random, values: Sequence[Json], sparse: float) -> Call:
    name = random.choice(NAMES)
    if random.random() < sparse:
        return [name, None]
    return [name, {random.choice(KEYS): random.choice(values) for _ in range(random.randrange(3))}]


def _nested(random: Random, values: Sequence[Json]) -> list[Call]:
    """Calls of one tool with overlapping arguments, so that one call may answer several."""
    arguments = {key: random.choice(values) for key in KEYS}
    return [
        ["a", {key: value for key, value in arguments.items() if random.random() < 0.6}]
        for _ in range(3)
    ]


def _near(random: Random, pool: Sequence[Call], values: Sequence[Json]) -> Call:
    """A call of the pool, or one that differs from it in an argument."""
    name, arguments = random.choice(pool)
    if arguments is None or random.random() < 0.3:
        return [name, arguments]
    changed = dict(arguments)
    key = random.choice(KEYS)
    if random.random() < 0.3:
        changed.pop(key, None)
    else:
        changed[key] = random.choice(values)
    return [name, changed]


def _respelled(random: Random, call: Call, values: Sequence[Json]) -> Call:
    """The call, sometimes with blanks around its name, with values that Python takes for the same,
    or without those that are null.
    """
    name, arguments = call
    if random.random() < 0.05:
        name += random.choice(BLANKS)
    if arguments is not None and random.random() < 0.3:
        said = {
            key: value
            for key, value in arguments.items()
            if value is not None or random.random() < 0.3
        }
        arguments = {
            key: random.choice([other for other in values if other == value] or [value])
            for key, value in said.items()
        }
    return [name, arguments]


def _texts(random: Random, words: Sequence[str]) -> Case:
    vocabulary = [random.choice(words) for _ in range(random.choice((3, 8, 20)))]
    if random.random() < 0.2:
        vocabulary.append(LONG_WORDS[0])
    reference = [random.choice(vocabulary) for _ in range(random.randrange(12))]
    response = [
        random.choice(LONG_WORDS) if word in LONG_WORDS else word
        for word in _mutated(random, reference, lambda: random.choice(vocabulary))
    ]
    return {"response": _joined(random, response), "reference": _joined(random, reference)}


def _joined(random: Random, words: Sequence[str]) -> str:
    return "".join(word + random.choice(SEPARATORS) for word in words)


def _mutated(random: Random, items: Sequence[_T], new: Callable[[], _T]) -> list[_T]:
    """The items after up to three changes, or new ones altogether."""
    if random.random() < 0.1:
        return [new() for _ in range(random.randrange(7))]
    changed = list(items)
    for _ in range(random.randrange(4)):
        random.choice((_insert, _delete, _swap, _change))(random, changed, new)
    return changed


def _insert(random: Random, items: list[_T], new: Callable[[], _T]) -> None:
    items.insert(random.randrange(len(items) + 1), new())


def _delete(random: Random, items: list[_T], _: Callable[[], _T]) -> None:
    if items:
        items.pop(random.randrange(len(items)))


def _swap(random: Random, items: list[_T], _: Callable[[], _T]) -> None:
    if items:
        i, j = random.randrange(len(items)), random.randrange(len(items))
        items[i], items[j] = items[j], items[i]


def _change(random: Random, items: list[_T], new: Callable[[], _T]) -> None:
    if items:
        items[random.randrange(len(items))] = new()
