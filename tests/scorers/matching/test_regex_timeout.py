"""A match is given up only if it takes too long by itself."""

from __future__ import annotations

import pytest
import regex

from pathgauge.scorers.matching.regex_timeout import matched

PATTERN = regex.compile("a+")
BACKTRACKING = regex.compile("(a|aa)+b")


def test_a_match_is_repeated_after_the_machine_was_paused() -> None:
    tried: list[float] = []

    def paused_once(text: str, timeout: float) -> object:
        tried.append(timeout)
        if len(tried) == 1:
            raise TimeoutError
        return PATTERN.search(text, timeout=timeout)

    assert matched(paused_once, "xaay", 0.005).span() == (1, 3)
    assert tried == [0.005, 0.005]


def test_a_match_that_always_takes_too_long_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        matched(BACKTRACKING.search, "a" * 60, 0.005)
