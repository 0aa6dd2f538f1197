"""The response match score, the exact match, and when text scorers have no value."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge import ReferenceTurn, Score, Scorer
from pathgauge.scorers.authoring.builders import invocation, reference_turn
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.responses.bleu import Bleu
from pathgauge.scorers.responses.rouge import Rouge, Rouge1, Rouge2, RougeL, RougeLSum
from pathgauge.scorers.responses.text_match import ResponseExactMatch, ResponseMatchScore
from pathgauge.scorers.responses.text_scorer import TextScorer

CAPPED: list[type[Rouge] | type[Bleu]] = [
    ResponseMatchScore,
    Rouge1,
    Rouge2,
    RougeL,
    RougeLSum,
    Bleu,
]
ALL: list[type[TextScorer]] = [ResponseExactMatch, *CAPPED]


def score(reference: str, response: str | None, **options: Any) -> Score:
    return ResponseMatchScore(**options).score(
        invocation(final_response=response), reference_turn(response=reference)
    )


def exact(reference: str, response: str, **options: Any) -> Score:
    return ResponseExactMatch(**options).score(
        invocation(final_response=response), reference_turn(response=reference)
    )


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


@pytest.mark.parametrize(
    ("reference", "response", "value"),
    [("He was running fast", "He runs fast", 0.571), ("dogs", "dog", 0.0)],
)
def test_words_are_compared_as_they_are_without_stemmer(
    reference: str, response: str, value: float
) -> None:
    assert score(reference, response, stemmer=False).value == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize(
    ("reference", "response", "value"),
    [("👍", "👍 ", 1.0), ("👍", "👎", 0.0), ("!!!", "!!!", 1.0), ("!!!", "ok", 0.0)],
)
def test_a_reference_without_words_is_compared_as_text(
    reference: str, response: str, value: float
) -> None:
    result = score(reference, response)
    assert (result.value, result.details) == (value, {"compared": "text"})


def test_the_evidence_is_precision_and_recall() -> None:
    assert score("4", "The answer is 4") == Score(
        0.4,
        None,
        "precision 0.25 of 4 tokens, recall 1.00 of 1 tokens",
        {"precision": 0.25, "recall": 1.0, "tokens": {"actual": 4, "expected": 1}},
    )


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_swapping_response_and_reference_swaps_precision_and_recall(one: str, other: str) -> None:
    first, second = score(one, other), score(other, one)
    if first.details.keys() == second.details.keys() == {"precision", "recall", "tokens"}:
        assert first.value == pytest.approx(second.value)
        assert (first.details["precision"], first.details["recall"]) == (
            second.details["recall"],
            second.details["precision"],
        )


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "turn", [None, ReferenceTurn(), ReferenceTurn(response=""), ReferenceTurn(response=" \n")]
)
def test_without_reference_text_there_is_no_value(
    kind: type[TextScorer], turn: ReferenceTurn | None
) -> None:
    assert kind().score(invocation(), turn) == Score(
        None, "no_reference", "no reference for the response"
    )


@pytest.mark.parametrize("kind", ALL)
def test_a_response_that_was_not_recorded_is_not_an_empty_one(kind: type[TextScorer]) -> None:
    expected = reference_turn(response="Hello")
    assert kind().score(invocation(final_response=None), expected).reason == "response_not_recorded"
    assert kind().score(invocation(final_response=""), expected).value == 0.0


@pytest.mark.parametrize("kind", CAPPED)
@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("a " * 10, None),
        ("a " * 11, "too_long"),
        ("a" * 320, None),
        ("a" * 321, "too_long"),
        ("天 " * 11, "too_long"),
    ],
)
def test_long_text_is_not_evaluated(
    kind: type[Rouge] | type[Bleu], response: str, reason: str | None
) -> None:
    scorer = kind(max_tokens=10)
    assert (
        scorer.score(invocation(final_response=response), reference_turn(response="a")).reason
        == reason
    )
    assert (
        scorer.score(invocation(final_response="a"), reference_turn(response=response)).reason
        == reason
    )


@pytest.mark.parametrize("kind", CAPPED)
def test_the_cap_is_a_positive_number(kind: type[Rouge] | type[Bleu]) -> None:
    with pytest.raises(ValueError, match="max_tokens: found 0, expected a positive number"):
        kind(max_tokens=0)


@pytest.mark.parametrize(
    "scorer",
    [
        *(kind() for kind in ALL),
        *(kind(stemmer=True, max_tokens=100) for kind in (Rouge1, Rouge2, RougeL, RougeLSum)),
        ResponseMatchScore(stemmer=False),
        ResponseExactMatch(ignore_case=True, ignore_whitespace=True),
        Bleu(effective_order=False, lowercase=True, max_tokens=100),
    ],
)
def test_text_scorers_keep_the_contract(scorer: Scorer) -> None:
    surrogate = (
        invocation(final_response="\ud800 one\ntwo"),
        reference_turn(response="one\r\n\ntwo \ud83d"),
    )
    check_scorer(scorer, [surrogate, (surrogate[0], reference_turn(response="\n one two"))])


@pytest.mark.parametrize(
    ("reference", "response", "result"),
    [
        (
            "Paris",
            " Paris\n",
            Score(1.0, None, "the response is the reference", {"first_difference": None}),
        ),
        (
            "Paris",
            "paris",
            Score(
                0.0,
                None,
                "differs at character 0: found 'paris', expected 'Paris'",
                {"first_difference": 0},
            ),
        ),
        (
            "It is on",
            "It is on\nfire",
            Score(
                0.0,
                None,
                r"differs at character 8: found '\nfire', expected ''",
                {"first_difference": 8},
            ),
        ),
        (
            "a  b",
            "a b",
            Score(
                0.0,
                None,
                "differs at character 2: found 'b', expected ' b'",
                {"first_difference": 2},
            ),
        ),
        (
            "x" * 50,
            "x" * 10 + "y" * 50,
            Score(
                0.0,
                None,
                f"differs at character 10: found '{'y' * 20}', expected '{'x' * 20}'",
                {"first_difference": 10},
            ),
        ),
        (
            "café",
            "cafe\u0301",
            Score(
                0.0,
                None,
                r"differs at character 3: found 'e\u0301', expected '\xe9'",
                {"first_difference": 3},
            ),
        ),
    ],
)
def test_the_exact_match_is_of_the_text_without_the_blanks_around_it(
    reference: str, response: str, result: Score
) -> None:
    assert exact(reference, response) == result


@pytest.mark.parametrize(
    ("response", "options", "value"),
    [
        ("green  tea,\nno STRASSE", {}, 0.0),
        ("green  tea,\nno STRASSE", {"ignore_case": True}, 0.0),
        ("Green  tea,\nno Straße", {"ignore_whitespace": True}, 1.0),
        ("green  tea,\nno STRASSE", {"ignore_case": True, "ignore_whitespace": True}, 1.0),
        ("greentea,no straße", {"ignore_case": True, "ignore_whitespace": True}, 0.0),
    ],
)
def test_the_exact_match_may_ignore_case_and_white_space(
    response: str, options: dict[str, bool], value: float
) -> None:
    assert exact("Green tea,\tno Straße", response, **options).value == value


@pytest.mark.parametrize(
    ("statements", "loaded"),
    [
        (
            (
                "from pathgauge.scorers.responses import text_match;"
                " text_match.ResponseExactMatch(), text_match.ResponseMatchScore(stemmer=False)"
            ),
            "",
        ),
        (
            (
                "from pathgauge.scorers.responses.bleu import Bleu; from"
                " pathgauge.scorers.responses.rouge import RougeLSum; Bleu(), RougeLSum()"
            ),
            "",
        ),
        (
            (
                "from pathgauge.scorers.responses.text_match import ResponseMatchScore;"
                " ResponseMatchScore()"
            ),
            "rouge_score",
        ),
        (
            "from pathgauge.scorers.responses.rouge import Rouge2; Rouge2(stemmer=True)",
            "rouge_score",
        ),
    ],
)
def test_only_scorers_with_a_stemmer_load_it_when_they_are_built(
    statements: str, loaded: str
) -> None:
    code = f"import sys; {statements}; print(*{{'rouge_score'}} & sys.modules.keys())"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == loaded
    )
