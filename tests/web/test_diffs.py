"""Word by word: what differs between two texts, in bounded time."""

from __future__ import annotations

import time

import pytest

from pathgauge.collector.web.diffs import MAX_WORDS, Piece, word_diff


def written(pieces: object) -> str:
    return "".join(f"[{one.text}]" if one.differs else one.text for one in pieces)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("expected", "actual", "shown"),
    [
        ("one two", "one two", ("one two", "one two")),
        ("order A-1042 now", "order A-1043 now", ("order A-[1042] now", "order A-[1043] now")),
        ("a b c", "a c", ("a [b ]c", "a c")),
        ("a c", "a b c", ("a c", "a [b ]c")),
        ("Paris", "London", ("[Paris]", "[London]")),
        ("", "new", ("[]", "[new]")),
    ],
)
def test_words_that_differ_are_marked(expected: str, actual: str, shown: tuple[str, str]) -> None:
    assert tuple(map(written, word_diff(expected, actual))) == shown


def test_texts_with_little_in_common_are_marked_as_a_whole() -> None:
    one, other = word_diff("the parcel is in Bremen today", "nobody knows, is it lost?")
    assert ([piece.differs for piece in one], [piece.differs for piece in other]) == (
        [True],
        [True],
    )


def test_the_end_of_long_texts_is_compared_as_a_whole() -> None:
    same, rest = "word " * (MAX_WORDS // 2), "end"
    one, other = word_diff(same + rest + "s", same + rest)
    assert (one, other) == (
        [Piece(same, False), Piece("ends", True)],
        [Piece(same, False), Piece("end", True)],
    )


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("a " * 50_000, "b a " * 50_000),
        ("ab" * 50_000, "ba" * 50_000),
        ("- " * 5_000, "-" * 10_000),
        (" ".join(map(str, range(5_000))), " ".join(map(str, range(5_000, 0, -1)))),
        (" ".join(str(n % 7) for n in range(5_000)), " ".join(str(n % 11) for n in range(5_000))),
        (" ".join(str(n % 60) for n in range(300)), " ".join(str(n * 7 % 60) for n in range(300))),
    ],
    ids=["repeated", "one word", "symbols", "reversed", "short cycles", "long cycles"],
)
def test_hostile_texts_take_little_time(expected: str, actual: str) -> None:
    began = time.thread_time()
    word_diff(expected, actual)
    assert time.thread_time() - began < 0.3
