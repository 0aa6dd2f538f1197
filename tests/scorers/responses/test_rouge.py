"""ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum: the values of rouge_score, in linear memory and short
time.
"""

import random
from time import process_time

import pytest
from hypothesis import given, settings, strategies as st
from rouge_score.rouge_scorer import RougeScorer

from pathgauge import Score
from pathgauge.scorers.authoring.builders import invocation, reference_turn
from pathgauge.scorers.responses.rouge import MAX_STEPS, Rouge, Rouge1, Rouge2, RougeL, RougeLSum
from support.examples import examples

ORACLES: list[tuple[type[Rouge], str]] = [
    (Rouge1, "rouge1"),
    (Rouge2, "rouge2"),
    (RougeL, "rougeL"),
    (RougeLSum, "rougeLsum"),
]

WORDS = ["run", "running", "dogs", "dog", "the", "Paris", "\n", "\n", "!"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join)


def score(scorer: Rouge, reference: str, response: str) -> Score:
    return scorer.score(invocation(final_response=response), reference_turn(response=reference))


@pytest.mark.parametrize(("kind", "name"), ORACLES)
@settings(deadline=None, max_examples=examples(100))
@given(reference=TEXTS, response=TEXTS, stemmer=st.booleans())
def test_english_has_the_values_of_rouge_score(
    kind: type[Rouge], name: str, reference: str, response: str, stemmer: bool
) -> None:
    found = score(kind(stemmer=stemmer), reference, response)
    expected = RougeScorer([name], use_stemmer=stemmer).score(reference, response)[name]
    if found.value is not None and "precision" in found.details:
        assert (found.value, found.details["precision"], found.details["recall"]) == (
            expected.fmeasure,
            expected.precision,
            expected.recall,
        )


@pytest.mark.parametrize(
    ("reference", "response", "values"),
    [
        (
            "The weather in London is sunny",
            "It's sunny in London today",
            [1 / 2, 2 / 10, 1 / 3, 1 / 3],
        ),
        ("4", "The answer is 4", [0.4, 0.0, 0.4, 0.4]),
        ("Hello world", "Goodbye universe", [0.0, 0.0, 0.0, 0.0]),
        ("the cat\nsat on mat", "sat on mat\nthe cat", [1.0, 0.75, 0.6, 1.0]),
        ("今天天气很好", "今天下雨", [0.4, 2 * 0.2 * (1 / 3) / (0.2 + 1 / 3), 0.4, 0.4]),
        ("a b", "", [0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_values_of_all_four(reference: str, response: str, values: list[float]) -> None:
    assert [score(kind(), reference, response).value for kind, _ in ORACLES] == pytest.approx(
        values
    )


@pytest.mark.parametrize(
    ("reference", "response", "value"),
    [
        ("a b c d", "a c\nb d", 1.0),  # one line, covered by two
        ("a b\na b", "a b", 2 * 1 * 0.5 / 1.5),  # a word counts as often as the response has it
        ("a b\r\nc", "c\r\na b", 1.0),
        ("\n\na\n", "\na", 1.0),
        ("a. b", "b. a", 0.5),  # sentences are no lines
    ],
)
def test_rouge_l_sum_compares_line_by_line(reference: str, response: str, value: float) -> None:
    assert score(RougeLSum(), reference, response).value == pytest.approx(value)


def test_the_evidence_of_pairs_counts_pairs() -> None:
    result = score(Rouge2(), "a b c", "a b d c")
    assert result.value == pytest.approx(0.4)
    assert result.explanation == "precision 0.33 of 3 bigrams, recall 0.50 of 2 bigrams"
    assert result.details == {
        "precision": 1 / 3,
        "recall": 0.5,
        "bigrams": {"actual": 3, "expected": 2},
    }


@pytest.mark.parametrize(
    ("response", "value", "line"), [(" Yes. ", 1.0, "is the same text"), ("Yes", 0.0, "differs")]
)
def test_a_reference_of_one_word_has_no_pairs_and_is_compared_as_text(
    response: str, value: float, line: str
) -> None:
    expected = Score(
        value, None, f"the reference has no bigrams; the response {line}", {"compared": "text"}
    )
    assert score(Rouge2(), "Yes.", response) == expected


@pytest.mark.parametrize("kind", [Rouge1, Rouge2, RougeL, RougeLSum])
@pytest.mark.parametrize("per_line", [1, 10, 100, 4_000])
def test_four_thousand_words_take_a_moment(kind: type[Rouge], per_line: int) -> None:
    numbers = random.Random(1)
    vocabulary = [f"w{int(1 / (1e-4 + numbers.random()))}" for _ in range(10_000)]
    lines = [" ".join(numbers.choices(vocabulary, k=per_line)) for _ in range(8_000 // per_line)]
    half = len(lines) // 2
    begun = process_time()
    assert score(kind(), "\n".join(lines[:half]), "\n".join(lines[half:])).value is not None
    assert process_time() - begun < 2  # on slow machines; 0.3 s on others


def test_lines_that_never_cover_each_other_are_given_up() -> None:
    lines = MAX_STEPS // 1_000
    reference, response = (
        " \n".join(f"{words} {side}{n}" for n in range(6 * lines))
        for side, words in (("x", "a b"), ("y", "b a"))
    )
    result = score(RougeLSum(), reference, response)
    assert (result.reason, result.explanation) == (
        "too_long",
        "response and reference have too many lines with the same words",
    )
