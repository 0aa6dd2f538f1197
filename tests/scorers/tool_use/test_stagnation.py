"""Stagnation: which texts repeat each other, and when that is not known."""

from typing import Any

import pytest

from pathgauge import Extras, ModelCall, Score, Stagnation, check_scorer, invocation
from pathgauge.scorers.tool_use.stagnation import MAX_TEXTS

LOOKING = "I am still looking for a flight from Paris to Rome on Monday"


def said(*texts: str | None, run: str = "1", **others: Any) -> Any:
    models = tuple(ModelCall(str(at), run=run, text=text) for at, text in enumerate(texts))
    return invocation(model_calls=models, **others)


def value(*texts: str, **options: Any) -> float | None:
    return Stagnation(**options).score(said(*texts), None).value


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([LOOKING], 0.0),
        ([LOOKING, LOOKING], 0.5),
        ([LOOKING, LOOKING.upper() + "!"], 0.5),
        ([LOOKING, "Here is a flight at nine in the morning", LOOKING], 1 / 3),
        ([LOOKING, LOOKING.replace("Monday", "Tuesday")], 0.5),
        ([LOOKING, LOOKING.replace("Paris to Rome", "Oslo to Bern")], 0.0),
        ([LOOKING, "", "Let me see.", LOOKING, "Let me see."], 0.5),
        ([LOOKING] * 4, 0.75),
        (["今天天气很好", "今天天气很好"], 0.5),
    ],
)
def test_a_text_repeats_an_earlier_one_that_is_nearly_the_same(
    texts: list[str], expected: float
) -> None:
    assert value(*texts) == expected


def test_texts_are_similar_by_the_pairs_of_words_that_they_share() -> None:
    one, other = "a b c d e f", "a b c d e x"  # 4 of 6 different pairs in common
    assert value(one, other, similarity=4 / 6) == 0.5
    assert value(one, other, similarity=0.67) == 0.0
    assert value("a b c d dog", "a b c d dogs", similarity=1) == 0.0


def test_texts_that_share_just_as_much_as_asked_for_are_similar() -> None:
    shared = [f"a{number}" for number in range(8)]
    one, other = ([*shared, *(f"{name}{number}" for number in range(9))] for name in "bc")
    assert value(" ".join(one), " ".join(other), similarity=7 / 25) == 0.5


def test_short_texts_are_ignored() -> None:
    assert value("a b c d e", "a b c d e") == 0.5
    assert value("a b c d", "a b c d") is None
    assert value("a b", "a b", min_words=2) == 0.5


def test_the_explanation_quotes_the_first_repetition() -> None:
    assert Stagnation().score(said(LOOKING.upper(), "", f"{LOOKING}\n", LOOKING), None) == Score(
        2 / 3,
        None,
        "2 of 3 texts repeat an earlier one: 'I am still looking for a flight from Paris to Rome on"
        " Mond…",
        {"repeated": [[2, 0], [3, 0]]},
    )


def test_it_needs_the_texts_of_the_model() -> None:
    assert Stagnation().extras == Extras(model_texts=True)


def test_the_limit_itself_is_evaluated() -> None:
    texts = [f"a b c d {at}" for at in range(MAX_TEXTS)]
    assert value(*texts, *texts, similarity=1) == 0.5


def test_another_run_may_say_the_same() -> None:
    models = (ModelCall("1", run="billing", text=LOOKING), ModelCall("2", run="1", text=LOOKING))
    assert Stagnation().score(invocation(model_calls=models), None).value == 0.0


@pytest.mark.parametrize(
    ("actual", "reason"),
    [
        (said(), "incomplete"),
        (said("", "Let me see."), "not_applicable"),
        (said(LOOKING, None), "texts_not_recorded"),
        (said(LOOKING, flags=frozenset({"dropped_spans"})), "incomplete"),
        (said(*(f"{LOOKING} {at}" * 2 for at in range(MAX_TEXTS + 1))), "too_long"),
    ],
)
def test_there_is_no_value_if_the_texts_are_not_known(actual: Any, reason: str) -> None:
    assert Stagnation(1).score(actual, None).reason == reason


def test_a_call_that_failed_said_nothing() -> None:
    models = (ModelCall("1", error="timeout"), ModelCall("2", text=LOOKING))
    assert Stagnation().score(invocation(model_calls=models), None).value == 0.0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"similarity": 0}, "similarity: found 0, expected a number above 0, up to 1"),
        ({"similarity": 1.1}, "similarity: found 1.1"),
        ({"min_words": 1}, "min_words: found 1, expected a number from 2"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Stagnation(**options)


def test_it_keeps_the_contract() -> None:
    check_scorer(Stagnation(), [(said(LOOKING, LOOKING), None)])
