"""rouge-score: the F-measure of two English texts, with and without stemmer."""

from __future__ import annotations

from rouge_score.rouge_scorer import RougeScorer

from .lines import Case, Results, answer

TYPES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
SCORERS = {
    "": RougeScorer(TYPES, use_stemmer=False),
    " stemmer": RougeScorer(TYPES, use_stemmer=True),
}


def results(case: Case) -> Results:
    """The F-measure of every type."""
    return {
        f"{kind}{name}": float(measures.fmeasure)
        for name, scorer in SCORERS.items()
        for kind, measures in scorer.score(case["reference"], case["response"]).items()
    }


if __name__ == "__main__":
    answer(("rouge-score", "nltk"), results)
