"""Laws of error bodies: whatever a server writes, no secret is shown, and nothing raises."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.judges.model_client.accepted_parameters import PARAMETERS
from pathgauge.scorers.judges.model_client.error_bodies import (
    MAX_SHOWN_CHARS,
    json_of,
    refused_parameter,
    shown,
    text_of,
)

TEXT = st.text(st.sampled_from("abAB ßİ12{}\n\x1b🤖"), max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "detail", "loc", "msg", "param", "x"]),
            inner,
            max_size=4,
        )
    ),
)


@given(TEXT, TEXT, TEXT, TEXT)
def test_no_run_of_the_key_or_of_the_content_is_shown(
    before: str, after: str, key: str, content: str
) -> None:
    key, content = key.strip(), " ".join(content.split())
    text = text_of({"message": f"{before}{key}{after}{content.upper()}{before}"})
    found = shown(text, key, {"response": content}).replace("[REDACTED]", "\0").casefold()
    assert len(found) <= MAX_SHOWN_CHARS
    for source, length in ((key, 6), (content, 12)):
        folded = source.casefold()
        runs = {folded[at : at + length] for at in range(len(folded) - length + 1)}
        assert not [run for run in runs if run in found]


@given(st.text(st.sampled_from("xyz .,"), max_size=200))
def test_text_without_secrets_is_shown_as_it_is(text: str) -> None:
    text = " ".join(text.split())
    assert shown(text_of(text), "sk-0123456789", {"response": "something else"}) == text


def test_the_content_is_searched_in_linear_time() -> None:
    trajectory = "".join(f"{number:x} order of a customer " for number in range(80_000))
    text = "".join(f"order of {number} " for number in range(300))
    before = time.process_time()
    shown(text_of(text), "sk-0123456789", {"trajectory": trajectory})
    assert time.process_time() - before < 3


@given(st.text("ab", max_size=60), st.text("ab", max_size=120))
def test_exactly_the_runs_of_the_content_are_hidden(text: str, content: str) -> None:
    runs = [text[at : at + 12] for at in range(len(text) - 11)]
    hidden = {at + n for at, run in enumerate(runs) if run in content for n in range(12)}
    expected = "".join("_" if at in hidden else char for at, char in enumerate(text))
    assert shown(text, "", {"response": content}) == re.sub("_+", "[REDACTED]", expected)


@pytest.mark.parametrize(
    "body",
    [
        [{}] * 349_000,
        [[[[[[{}] * 349_000]]]]],
        [[]] * 349_000,
        [{"message": "a"}] * 70_000,
        {"loc": [1] * 500_000, "msg": "a"},
        ["a"] * 250_000,
    ],
    ids=["objects", "below lists", "lists", "messages", "a place", "texts"],
)
def test_a_large_body_takes_no_longer_than_a_small_one(body: Any) -> None:
    before = time.process_time()
    for _ in range(10):
        text_of(body)
    assert time.process_time() - before < 0.1


@given(JSON)
def test_any_body_has_a_text_of_one_line_and_refuses_at_most_what_was_sent(body: object) -> None:
    assert "\n" not in text_of(body)
    assert refused_parameter(body, PARAMETERS[:2]) in (None, *PARAMETERS[:2])


@given(st.text(max_size=30))
def test_any_text_is_a_body(text: str) -> None:
    assert isinstance(text_of(json_of(text)), str)
