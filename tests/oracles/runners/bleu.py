"""sacreBLEU: sentence BLEU from 0 to 1, with and without effective order and lower case."""

from __future__ import annotations

from itertools import product

from sacrebleu.metrics import BLEU

from .lines import Case, Results, answer

SCORERS = {
    f"bleu{' effective_order' if effective_order else ''}{' lowercase' if lowercase else ''}": BLEU(
        effective_order=effective_order, lowercase=lowercase
    )
    for effective_order, lowercase in product((False, True), repeat=2)
}


def results(case: Case) -> Results:
    """The score with every setting."""
    return {
        name: scorer.sentence_score(case["response"], [case["reference"]]).score / 100
        for name, scorer in SCORERS.items()
    }


if __name__ == "__main__":
    answer(("sacrebleu",), results)
