"""The words of a text in any script, and runs of them."""

import pytest
from hypothesis import given, settings, strategies as st
from rouge_score.tokenizers import DefaultTokenizer

from pathgauge.scorers.responses.tokens import ngrams, tokens


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
    assert tokens(text, stemmer=True) == (
        expected.split() if isinstance(expected, str) else expected
    )


@settings(deadline=None)
@given(st.text(st.characters(max_codepoint=127), max_size=60), st.booleans())
def test_ascii_text_has_the_tokens_of_rouge_score(text: str, stemmer: bool) -> None:
    assert tokens(text, stemmer=stemmer) == DefaultTokenizer(use_stemmer=stemmer).tokenize(text)


@pytest.mark.parametrize(
    ("words", "n", "expected"),
    [
        ("a b a", 1, {("a",): 2, ("b",): 1}),
        ("a b a b", 2, {("a", "b"): 2, ("b", "a"): 1}),
        ("a", 2, {}),
        ("", 1, {}),
    ],
)
def test_runs_of_words_are_counted(
    words: str, n: int, expected: dict[tuple[str, ...], int]
) -> None:
    assert ngrams(words.split(), n) == expected
