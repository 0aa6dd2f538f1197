"""Agreement measures, compared with tables calculated by hand and with their definitions."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.judges.agreement import (
    BinaryQuality,
    OrdinalQuality,
    binary,
    kappa,
    measures,
    ordinal,
)

SCALE = st.integers(1, 5)
Vote = tuple[bool, bool | None]

GRADES = st.lists(st.tuples(SCALE, SCALE), min_size=1, max_size=30)


def near(value: float) -> Any:
    """Equal except for rounding."""
    return pytest.approx(value)


def pairs_of(table: dict[tuple[float, float], int]) -> list[tuple[float, float]]:
    """Each pair, repeated as often as the table says."""
    return [pair for pair, times in table.items() for _ in range(times)]


def votes(both: int, label_only: int, verdict_only: int, neither: int) -> list[Vote]:
    """Pairs with these counts."""
    table: dict[Vote, int] = {
        (True, True): both,
        (True, False): label_only,
        (False, True): verdict_only,
        (False, False): neither,
    }
    return [vote for vote, times in table.items() for _ in range(times)]


def test_binary_measures_follow_from_the_confusion_matrix() -> None:
    assert binary(votes(20, 5, 10, 15)) == BinaryQuality(
        labelled=50,
        answered=50,
        agreement=0.7,
        kappa=near(0.4),  # chance agrees in 0.5 * 0.6 + 0.5 * 0.4
        balanced_accuracy=near((0.8 + 0.6) / 2),
        precision=near(20 / 30),
        recall=0.8,
        f1=near(40 / 55),
    )


def test_missing_verdicts_are_counted_and_change_no_measure() -> None:
    unanswered: list[Vote] = [(True, None), (True, None), (True, None), (False, None)]

    assert measures(binary(votes(4, 1, 2, 3) + unanswered)) == measures(
        binary(votes(4, 1, 2, 3))
    ) | {"labelled": 14}
    assert measures(ordinal([(1, 2.0), (5, None), (4, 4.0)])) == measures(
        ordinal([(1, 2.0), (4, 4.0)])
    ) | {"labelled": 3}


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], BinaryQuality(0, 0, None, None, None, None, None, None)),
        ([(True, None)], BinaryQuality(1, 0, None, None, None, None, None, None)),
        (votes(3, 0, 0, 0), BinaryQuality(3, 3, 1.0, None, None, 1.0, 1.0, 1.0)),
        (votes(0, 3, 0, 0), BinaryQuality(3, 3, 0.0, 0.0, None, None, 0.0, 0.0)),
        (votes(0, 0, 0, 3), BinaryQuality(3, 3, 1.0, None, None, None, None, None)),
        (votes(2, 0, 2, 0), BinaryQuality(4, 4, 0.5, 0.0, 0.5, 0.5, 1.0, near(2 / 3))),
        (votes(0, 2, 2, 0), BinaryQuality(4, 4, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0)),
        (votes(2, 0, 0, 2), BinaryQuality(4, 4, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)),
    ],
    ids=[
        "nothing",
        "no verdict",
        "all yes",
        "yes missed",
        "all no",
        "always yes",
        "all wrong",
        "all right",
    ],
)
def test_undefined_measures_are_none(pairs: list[Vote], expected: BinaryQuality) -> None:
    assert binary(pairs) == expected


def test_ordinal_measures_follow_from_the_table() -> None:
    # Labels 1, 2, 3: 3, 3 and 4 times; verdicts: 4, 3 and 3 times. Squares: 2 of 1 and 1 of 4
    # observed. By chance (3*3 + 3*4 + 3*3 + 4*3 + 4*(3*3 + 4*4)) / 10 = 14.2
    pairs = pairs_of({(1, 1): 3, (2, 2): 2, (2, 3): 1, (3, 3): 2, (3, 2): 1, (3, 1): 1})

    assert ordinal(pairs) == OrdinalQuality(
        labelled=10,
        answered=10,
        agreement=0.7,
        kappa=near(1 - 6 / 14.2),
        mean_absolute_error=0.4,
        bias=near(-0.2),
    )


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], OrdinalQuality(0, 0, None, None, None, None)),
        ([(3.0, 3.0)] * 4, OrdinalQuality(4, 4, 1.0, None, 0.0, 0.0)),
        ([(1.0, 5.0), (5.0, 1.0)], OrdinalQuality(2, 2, 0.0, -1.0, 4.0, 0.0)),
        (
            [(0.5, 0.75), (0.25, 0.25)],
            OrdinalQuality(2, 2, 0.5, near(1 - 0.03125 / 0.09375), 0.125, 0.125),
        ),
    ],
    ids=["nothing", "all the same", "upside down", "shares"],
)
def test_ordinal_measures_of_few_grades(
    pairs: list[tuple[float, float | None]], expected: OrdinalQuality
) -> None:
    assert ordinal(pairs) == expected


@given(GRADES)
def test_kappa_equals_the_matrix_formula_with_quadratic_weights(
    pairs: list[tuple[int, int]],
) -> None:
    cells = list(product(range(1, 6), repeat=2))
    rows = {grade: sum(label == grade for label, _ in pairs) for grade in range(1, 6)}
    columns = {grade: sum(verdict == grade for _, verdict in pairs) for grade in range(1, 6)}
    observed = sum((row - column) ** 2 * pairs.count((row, column)) for row, column in cells)
    expected = sum(
        (row - column) ** 2 * rows[row] * columns[column] for row, column in cells
    ) / len(pairs)

    assert kappa(pairs) == (None if expected == 0 else near(1 - observed / expected))


def test_a_constant_judge_has_a_kappa_of_zero() -> None:
    assert kappa([(True, True), (False, True), (True, True)]) == 0


@given(GRADES, st.integers(1, 9), st.integers(-9, 9))
def test_kappa_is_independent_of_order_sides_and_scale(
    pairs: list[tuple[int, int]], factor: int, shift: int
) -> None:
    expected = kappa(pairs)
    others = [
        kappa(pairs[::-1]),
        kappa([(verdict, label) for label, verdict in pairs]),
        kappa([(label * factor + shift, verdict * factor + shift) for label, verdict in pairs]),
    ]

    assert others == [None if expected is None else near(expected)] * 3


@given(
    st.lists(st.tuples(st.booleans(), st.none() | st.booleans())),
    st.lists(st.tuples(st.floats(0, 1), st.none() | st.floats(0, 1))),
)
def test_every_measure_is_finite_or_none(
    yes: list[Vote], grades: list[tuple[float, float | None]]
) -> None:
    found = [*measures(binary(yes)).values(), *measures(ordinal(grades)).values()]

    assert all(value is None or math.isfinite(value) for value in found)
