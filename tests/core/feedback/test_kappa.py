"""Kappa, and its bounds against simulated raters whose error rates are known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, product
from random import Random
from typing import NamedTuple

import pytest

from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.kappa import (
    Table,
    agreement,
    best_log_likelihood,
    kappa_of,
)
from pathgauge.collector.core.feedback.pairs import CriterionKey, Judged, Pairing
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.scorers.judges import agreement as of_labels
from support.examples import examples

KEY = CriterionKey("", "quality", "judge@1")
RUNS = 100
CHI_SQUARED = 7.879
"""The quantile at 0.995, with one degree of freedom."""
EXACT_TO = 0.00015
"""How far from the truth a bound may be."""
MUST_HOLD = 95


class Raters(NamedTuple):
    """How often the criterion and a person say pass of good and of bad runs."""

    good: float
    """The share of good runs."""
    criterion_errs: tuple[float, float]
    """Of good runs that it fails, and of bad runs that it passes."""
    person_errs: tuple[float, float] = (0.0, 0.0)

    def passes(self, errors: tuple[float, float], *, good: bool) -> float:
        return 1 - errors[0] if good else errors[1]

    @property
    def kappa(self) -> float:
        """The true kappa: that of the probabilities."""
        both = people = criterion = 0.0
        for good, share in ((True, self.good), (False, 1 - self.good)):
            of_person = self.passes(self.person_errs, good=good)
            of_criterion = self.passes(self.criterion_errs, good=good)
            both += share * of_person * of_criterion
            people += share * of_person
            criterion += share * of_criterion
        apart = people + criterion - 2 * both
        return 1 - apart / (people + criterion - 2 * people * criterion)

    def probability(self, table: Table) -> float:
        """That so many runs give this table."""
        shares = [0.0] * 4
        for good, share in ((True, self.good), (False, 1 - self.good)):
            up = self.passes(self.person_errs, good=good)
            passed = self.passes(self.criterion_errs, good=good)
            each = (up * passed, up * (1 - passed), (1 - up) * passed, (1 - up) * (1 - passed))
            shares = [known + share * one for known, one in zip(shares, each, strict=True)]
        ways = math.factorial(table.pairs) // math.prod(map(math.factorial, table))
        return ways * math.prod(one**count for one, count in zip(shares, table, strict=True))

    def table(self, runs: int, random: Random) -> Table:
        """So many answered runs, from the answers to the counts."""
        pairing = Pairing(VerdictRules())
        for number in range(runs):
            good = random.random() < self.good
            up = random.random() < self.passes(self.person_errs, good=good)
            passed = random.random() < self.passes(self.criterion_errs, good=good)
            answer = Answer("", f"{number}", label="up" if up else "down")
            pairing.add("", 0.0, [answer], [Judged("quality", "judge 1", "judge@1", passed)])
        return pairing.found.tables[KEY]


PERFECT, GOOD = (0.0, 0.0), (0.05, 0.1)
LENIENT, RANDOM, STRICT = (0.01, 0.7), (0.3, 0.7), (0.4, 0.05)
CASES = [
    (runs, Raters(good, judge, person))
    for runs in (10, 20, 50, 100, 300)
    for good in (0.5, 0.7, 0.9, 0.97)
    for judge, person in ((GOOD, (0.02, 0.1)), (LENIENT, PERFECT), (STRICT, (0.1, 0.2)))
] + [(50, Raters(0.9, RANDOM)), (30, Raters(0.8, PERFECT))]
QUICK = [
    (10, Raters(0.7, GOOD)),
    (30, Raters(0.9, LENIENT)),
    (100, Raters(0.97, STRICT, (0.1, 0.2))),
]


def contains(table: Table, kappa: float) -> bool:
    """Whether the bounds contain a kappa."""
    found = agreement(table)
    assert found is not None
    return found.lower <= kappa + 1e-9 and kappa - 1e-9 <= found.upper


def explains(table: Table, kappa: float) -> bool:
    """The same in a thirtieth of the time, without a search for the bounds: whether some raters
    with this kappa explain the table nearly as well as the best raters.
    """
    best = likelihood(table, [count / table.pairs for count in table])
    return best_log_likelihood(table, kappa) >= best - CHI_SQUARED / 2


def contained(runs: int, raters: Raters, seed: int) -> int:
    """In how many of 100 simulations the bounds contain the true kappa. Where kappa is undefined,
    nothing is shown, so another simulation takes the place.
    """
    random, hits, shown = Random(seed), 0, 0
    for _ in range(20 * RUNS):
        table = raters.table(runs, random)
        if kappa_of(table) is None:
            continue
        shown += 1
        hits += explains(table, raters.kappa)
        if shown == RUNS:
            return hits
    pytest.skip("kappa is undefined nearly always")


@pytest.mark.parametrize(("runs", "raters"), QUICK)
def test_the_bounds_contain_the_truth(runs: int, raters: Raters) -> None:
    assert contained(runs, raters, seed=runs) >= MUST_HOLD


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("runs", "raters"), CASES)
def test_the_bounds_contain_the_truth_for_all_raters(runs: int, raters: Raters, seed: int) -> None:
    assert contained(runs, raters, seed) >= MUST_HOLD


@pytest.mark.slow
def test_the_bounds_contain_what_explains_the_pairs_and_nothing_else() -> None:
    random, inside, outside = Random(6), 0, 0
    for _ in range(examples(100)):
        table = Table(*(random.randrange(40) for _ in range(4)))
        found = agreement(table)
        kappa = random.uniform(-1, 1)
        if found is not None and min(abs(kappa - bound) for bound in found[1:]) > EXACT_TO:
            inside += explains(table, kappa)
            outside += not explains(table, kappa)
            assert contains(table, kappa) == explains(table, kappa), (table, kappa)
    assert min(inside, outside) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "raters",
    [
        Raters(good, judge, person)
        for good in (0.5, 0.9)
        for judge, person in ((GOOD, (0.02, 0.1)), (STRICT, (0.1, 0.2)), (RANDOM, PERFECT))
    ],
)
def test_the_share_of_ten_pairs_whose_bounds_contain_the_truth(raters: Raters) -> None:
    """Computed over all tables, without chance."""
    shown = hits = 0.0
    for table in tables(10):
        found = agreement(table)
        if found is not None:
            probability = raters.probability(table)
            shown += probability
            hits += probability * (found.lower <= raters.kappa + 1e-9 <= found.upper + 2e-9)
    assert hits / shown >= 0.985


def tables(pairs: int) -> Iterator[Table]:
    for both, people, criterion in product(range(pairs + 1), repeat=3):
        if both + people + criterion <= pairs:
            yield Table(both, people, criterion, pairs - both - people - criterion)


def test_more_answers_narrow_the_bounds() -> None:
    widths = []
    for scale in (1, 4, 16, 64):
        found = agreement(Table(12 * scale, 2 * scale, 2 * scale, 4 * scale))
        assert found is not None
        assert found.lower < found.kappa < found.upper
        widths.append(found.upper - found.lower)
    for wide, narrow in pairwise(widths):
        assert narrow == pytest.approx(wide / 2, rel=0.35)


@pytest.mark.parametrize("table", [Table(), Table(both=9), Table(neither=9)])
def test_without_two_verdicts_there_is_no_kappa(table: Table) -> None:
    assert agreement(table) is None


def test_a_constant_rater_agrees_by_chance_only() -> None:
    found = agreement(Table(both=28, people_only=2))
    assert found is not None
    assert found.kappa == 0
    assert found.lower < -0.05
    assert found.upper > 0.5


def test_kappa_is_that_of_judge_check() -> None:
    random = Random(4)
    for _ in range(200):
        table = Table(*(random.randrange(6) for _ in range(4)))
        pairs = [
            *[(True, True)] * table.both,
            *[(True, False)] * table.people_only,
            *[(False, True)] * table.criterion_only,
            *[(False, False)] * table.neither,
        ]
        expected = of_labels.kappa(pairs)
        found = kappa_of(table)
        assert (found is None) == (expected is None)
        if found is not None:
            assert found == pytest.approx(expected)


def likelihood(table: Table, shares: list[float]) -> float:
    return sum(
        count * (math.log(share) if share > 0 else -math.inf)
        for count, share in zip(table, shares, strict=True)
        if count
    )


@pytest.mark.slow
def test_no_raters_with_a_kappa_explain_the_pairs_better_than_the_search_found() -> None:
    random = Random(5)
    for _ in range(examples(4_000)):
        weights = [random.random() ** 3 for _ in range(4)]
        shares = [weight / sum(weights) for weight in weights]
        kappa = kappa_of(Table(*(round(share * 10**9) for share in shares)))
        table = Table(*(random.randrange(12) for _ in range(4)))
        assert kappa is not None
        assert best_log_likelihood(table, kappa) >= likelihood(table, shares) - 1e-3
