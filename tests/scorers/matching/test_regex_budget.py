"""Patterns of strangers: what is searched, what is refused, and what takes too long."""

import pytest

from pathgauge.scorers.matching.alignment import TooLongError
from pathgauge.scorers.matching.regex_budget import MAX_SIZE, MAX_TEXT, compiled, occurs


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("^[a-z]{2,3}$", "abc", True),
        (r"^(\d{1,3}\.){3}\d{1,3}$", "127.0.0.1", True),
        (
            r"^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$",
            "00f067aa-0ba9-02b7-0000-000000000000",
            True,
        ),
        (r"^\p{Lu}", "Été", True),
        (r"(?<year>\d{4})", "in 2026", True),
        ("a(?=b)(?!c)(?<=a)(?<!b)(?:b)", "ab", True),
        ("", "", True),
    ],
)
def test_a_pattern_is_looked_for_anywhere_in_the_text(pattern: str, text: str, found: bool) -> None:
    assert occurs(pattern, text) is found


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "[",
        "a{3}{3}",
        "*",
        "(?R)",
        "(?e)(?:abc){e}",
        "(?i)a",
        "(?x)(a{9}) {9}",
        "(?P<n>a)",
        "(?|a)",
        "(?#a)",
    ],
)
def test_what_is_no_pattern_of_javascript_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^found .*, expected (a pattern|one of JavaScript's)"):
        compiled(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?:a{1000}){1000}",
        "a{10000}",
        f"a{{{10**30}}}",
        "(?:aaaaaaaaaa){900}",
        "(ab{99}){99}",
        "(a|b){99,}(a){99}",
        "a" * 10_001,
    ],
)
def test_a_pattern_that_is_large_once_its_repeats_are_written_out_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=f"at most {MAX_SIZE:,} elements"):
        compiled(pattern)


def test_repeats_of_single_elements_add_up() -> None:
    assert occurs("^" + "a{1000}" * 9 + "$", "a" * 9000)


@pytest.mark.parametrize("pattern", ["^(a|a)*$", "^(a|aa)+$"])
def test_a_pattern_that_explodes_takes_too_long(pattern: str) -> None:
    with pytest.raises(TooLongError, match="takes too long on text of 61 characters"):
        occurs(pattern, "a" * 60 + "!")


def test_long_text_is_not_searched() -> None:
    assert occurs("a", "a" * MAX_TEXT)
    with pytest.raises(
        TooLongError,
        match=r"^text of 10,001 characters for the pattern 'a'; at most 10,000 are searched$",
    ):
        occurs("a", "a" * (MAX_TEXT + 1))
