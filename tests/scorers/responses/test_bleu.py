"""BLEU of one response: the values of sacreBLEU 2.6, from 0 to 1."""

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge import Score
from pathgauge.scorers.authoring.builders import invocation, reference_turn
from pathgauge.scorers.responses.bleu import Bleu, tokens


def score(reference: str, response: str, **options: Any) -> Score:
    return Bleu(**options).score(
        invocation(final_response=response), reference_turn(response=reference)
    )


@pytest.mark.parametrize(
    ("reference", "response", "plain", "effective", "lowercase"),
    [
        ("a b c d e f", "a b c d e f", 1.0, 1.0, 1.0),
        (
            "The weather in London is sunny",
            "It's sunny in London today",
            0.193577,
            0.193577,
            0.193577,
        ),
        ("4", "The answer is 4", 0.159736, 0.159736, 0.159736),
        ("ok", "ok", 0.0, 1.0, 1.0),
        ("a b c", "a b c", 0.0, 1.0, 1.0),
        ("the cat sat on", "The Cat Sat On", 0.0, 0.0, 1.0),
        ("今天天气很好", "今天天气很好", 0.0, 1.0, 1.0),
        ("the cat\nsat on mat", "sat on mat\nthe cat", 0.5, 0.5, 0.5),
        ("the cat sat on the mat", "", 0.0, 0.0, 0.0),
        ("the cat sat on the mat", "the cat sat", 0.0, 0.367879, 0.367879),
        ("the cat sat on the mat today", "the cat on the mat", 0.33516, 0.33516, 0.33516),
        (
            "It costs 1,000.50 (net), i.e. 5-6 &amp; more.",
            "It costs 1,000.50 (gross), i.e. 5-6 & more.",
            0.828248,
            0.828248,
            0.828248,
        ),
        ("a b c d e f g h", "a x c y e z g h", 0.138881, 0.138881, 0.138881),
        ("a a a b", "a a a a a", 0.397635, 0.397635, 0.397635),
        ("The cat sat", "the cat SAT down", 0.159736, 0.159736, 0.594604),
    ],
)
def test_values_of_sacrebleu(
    reference: str, response: str, plain: float, effective: float, lowercase: float
) -> None:
    options: list[dict[str, bool]] = [{"effective_order": False}, {}, {"lowercase": True}]
    assert [score(reference, response, **chosen).value for chosen in options] == pytest.approx(
        [plain, effective, lowercase], abs=5e-7
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, world! (really)", "Hello , world ! ( really )"),
        ("1,000.50 and 3.5.", "1,000.50 and 3.5 ."),
        ("5-6 a-b", "5 - 6 a-b"),
        ("U.S. don't", "U . S . don't"),
        ("a &quot;b&quot; &lt;c&gt; &amp;lt;", 'a " b " < c > <'),
        ("soft-\nware\nline", "software line"),
        ("<skipped>x", "x"),
        ("今天,好。", "今天 , 好。"),
        ("x~{y}|z @#$%^*_`[\\]", "x ~ { y } | z @ # $ % ^ * _ ` [ \\ ]"),
        (".5,", ". 5 ,"),
        (" tail-\n", "tail-"),
    ],
)
def test_tokens_of_mteval(text: str, expected: str) -> None:
    assert tokens(text) == expected.split()


def test_the_evidence_is_the_precisions_and_the_brevity_penalty() -> None:
    penalty = math.exp(-1)
    result = score("a b c d e f", "a b d")
    assert result.value == pytest.approx(penalty * (1 * 0.5 * 0.5) ** (1 / 3))
    assert (
        result.explanation
        == "precisions 1.00, 0.50, 0.50, 0.00 of n-grams of 1 to 4 words, brevity penalty 0.37"
    )
    precisions = [1.0, 0.5, 0.5, 0.0]
    assert result.details == {
        "precisions": precisions,
        "brevity_penalty": penalty,
        "tokens": {"actual": 3, "expected": 6},
    }


@given(st.text(min_size=1).filter(str.strip))
def test_the_reference_itself_has_1_unless_all_of_it_is_skipped(text: str) -> None:
    assert score(text, text).value == (1.0 if tokens(text) else 0.0)
