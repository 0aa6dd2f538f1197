"""The response match score: ROUGE-1 in any script, and when there is no value."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer

from scorers import ReferenceTurn, ResponseMatchScore, Score
from scorers.testing import invocation, reference_turn
from scorers.tokens import tokens


def score(reference: str, response: str | None, **options: Any) -> Score:
    return ResponseMatchScore(**options).score(invocation(final_response=response), reference_turn(response=reference))


@pytest.mark.parametrize(
    ("reference", "response", "value"),
    [
        ("aaaa b", "aaaa aaaa aaaa b", 0.667),
        ("He was running fast", "He runs fast", 0.857),
        ("dogs", "dog", 1.0),
        ("tool_name ok", "tool name ok", 1.0),
        ("สวัสดี", "สวัสดี", 1.0),
        ("Погода хорошая", "погода ХОРОШАЯ", 1.0),
        ("今天天气很好", "今天下雨", 0.4),
        ("नमस्ते दुनिया", "नमस्ते", 0.667),
        ("مرحبا بالعالم", "مرحبا", 0.667),
        ("これ は テスト の 正解", "これ は テスト 候補 の 応答", 0.7),
        ("ＡＢＣ123", "abc123", 1.0),
        ("1,000", "1000", 0.0),
        ("café", "cafe", 0.0),
        ("Straße größer", "Straße größer", 1.0),
        ("This is a test reference.", "This is a test candidate response.", 0.727),
        ("the cat", "the cat sat on the mat", 0.5),
    ],
)
def test_rouge_1_f_measure(reference: str, response: str, value: float) -> None:
    assert score(reference, response).value == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize(("reference", "response", "value"), [("He was running fast", "He runs fast", 0.571), ("dogs", "dog", 0.0)])
def test_words_are_compared_as_they_are_without_stemmer(reference: str, response: str, value: float) -> None:
    assert score(reference, response, stemmer=False).value == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize(
    ("reference", "response", "value"), [("👍", "👍 ", 1.0), ("👍", "👎", 0.0), ("!!!", "!!!", 1.0), ("!!!", "ok", 0.0)]
)
def test_a_reference_without_words_is_compared_as_text(reference: str, response: str, value: float) -> None:
    result = score(reference, response)
    assert (result.value, result.details) == (value, {"compared": "text"})


@pytest.mark.parametrize("turn", [None, ReferenceTurn(), ReferenceTurn(response=""), ReferenceTurn(response=" \n")])
def test_without_reference_text_there_is_no_value(turn: ReferenceTurn | None) -> None:
    assert ResponseMatchScore().score(invocation(), turn).reason == "no_reference"


def test_a_response_that_was_not_recorded_is_not_an_empty_one() -> None:
    assert score("Hello", None).reason == "response_not_recorded"
    assert score("Hello", "").value == 0.0


def test_the_evidence_is_precision_and_recall() -> None:
    assert score("4", "The answer is 4") == Score(
        0.4,
        None,
        "precision 0.25 of 4 tokens, recall 1.00 of 1 tokens",
        {"precision": 0.25, "recall": 1.0, "tokens": {"actual": 4, "expected": 1}},
    )


@pytest.mark.parametrize(
    ("response", "reason"),
    [("a " * 10, None), ("a " * 11, "too_long"), ("a" * 320, None), ("a" * 321, "too_long"), ("天" * 11, "too_long")],
)
def test_long_text_is_not_evaluated(response: str, reason: str | None) -> None:
    assert score("a", response, max_tokens=10).reason == reason
    assert score(response, "a", max_tokens=10).reason == reason


def test_the_cap_is_a_positive_number() -> None:
    with pytest.raises(ValueError, match="max_tokens: found 0, expected a positive number"):
        ResponseMatchScore(max_tokens=0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("สวัสดี ครับ", "ส วั ส ดี ค รั บ"),
        ("한국어 말", "한 국 어 말"),
        ("नमस्ते", "नमस्ते"),
        ("größer Straße", "größer straße"),
        ("ﬁne café", "fine café"),
        ("tool_name-2 It's", "tool name 2 it s"),
        ("hello สวัสดี", "hello ส วั ส ดี"),
        ("中文测试", "中 文 测 试"),
        ("ひらがな カタカナ", "ひ ら が な カ タ カ ナ"),
        ("ฉันรักคุณมาก", "ฉั น รั ก คุ ณ ม า ก"),
        ("ດີ", "ດີ"),
        ("ល្អ", "ល្ អ"),
        ("မင်္ဂလာ", "မ င်္ ဂ လာ"),
        ("Running jumped 123", "run jump 123"),
        ("مَرْحَبًا", "مَرْحَبًا"),
        ("Hello World! Привет мир", "hello world привет мир"),
        ("hello, world! @123 #test", "hello world 123 test"),
        ("AI今日", "ai 今 日"),
        ("👍 ⭐", ""),
        ("go" * 16 + "ing " + "go" * 14 + "ing", ["go" * 16 + "ing", "go" * 14]),
    ],
)
def test_tokens_of_all_scripts(text: str, expected: str | list[str]) -> None:
    assert tokens(text, stemmer=True) == (expected.split() if isinstance(expected, str) else expected)


@settings(deadline=None)
@given(st.text(st.characters(max_codepoint=127), max_size=60), st.booleans())
def test_ascii_text_has_the_tokens_of_rouge_score(text: str, stemmer: bool) -> None:
    assert tokens(text, stemmer=stemmer) == DefaultTokenizer(use_stemmer=stemmer).tokenize(text)


WORDS = st.lists(st.sampled_from(["run", "running", "dogs", "the", "Paris"]), max_size=8).map(" ".join)


@settings(deadline=None)
@given(WORDS.filter(bool), WORDS, st.booleans())
def test_english_has_the_f_measure_of_rouge_score(reference: str, response: str, stemmer: bool) -> None:
    expected = RougeScorer(["rouge1"], use_stemmer=stemmer).score(reference, response)["rouge1"].fmeasure
    assert score(reference, response, stemmer=stemmer).value == expected


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_swapping_response_and_reference_swaps_precision_and_recall(one: str, other: str) -> None:
    first, second = score(one, other), score(other, one)
    if first.details.keys() == second.details.keys() == {"precision", "recall", "tokens"}:
        assert first.value == pytest.approx(second.value)
        assert (first.details["precision"], first.details["recall"]) == (second.details["recall"], second.details["precision"])
