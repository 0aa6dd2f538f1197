"""The injection corpus: large, of many kinds, and deterministic."""

from __future__ import annotations

import unicodedata
from collections import Counter

from pathgauge.scorers.judges.injections import injections, sample
from support.obeying_judge import GOOD


def test_the_corpus_has_many_different_texts_of_many_kinds() -> None:
    texts = [injection.text for injection in injections()]
    kinds = Counter(injection.kind for injection in injections())

    assert len(texts) >= 120
    assert len(set(texts)) == len({injection.name for injection in injections()}) == len(texts)
    assert len(kinds) >= 10
    assert min(kinds.values()) >= 5
    assert not [text for text in texts if GOOD in text or not text]


def test_the_corpus_has_many_languages_and_scripts() -> None:
    texts = [injection.text for injection in injections() if injection.kind == "languages"]
    scripts = {
        unicodedata.name(char).split()[0] for text in texts for char in text if char.isalpha()
    }

    assert len(texts) >= 12
    assert scripts >= {
        "LATIN",
        "CYRILLIC",
        "GREEK",
        "ARABIC",
        "HEBREW",
        "DEVANAGARI",
        "BENGALI",
        "THAI",
        "CJK",
        "HIRAGANA",
        "HANGUL",
    }


def test_the_corpus_has_invisible_and_very_long_texts() -> None:
    unseen = {unicodedata.category(char) for injection in injections() for char in injection.text}

    assert {"Cc", "Cf", "Zl", "Zp"} <= unseen
    assert max(len(injection.text) for injection in injections()) > 20_000


def test_a_sample_is_deterministic_and_spread_over_all_kinds() -> None:
    kinds = {injection.kind for injection in injections()}
    some = sample(len(kinds) * 2)

    assert some == sample(len(kinds) * 2)
    assert Counter(injection.kind for injection in some) == dict.fromkeys(kinds, 2)
    assert sample(5) == some[:5]
    assert sample(0) == ()
    assert sorted(sample(10_000), key=str) == sorted(injections(), key=str)
