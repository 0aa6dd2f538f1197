"""RapidFuzz: the similarity of two sequences of calls by edit distance."""

from __future__ import annotations

from rapidfuzz.distance import OSA, Indel, LCSseq, Levenshtein, Prefix

from .equal_calls import numbered, same_call, same_name
from .lines import Case, Results, answer

DISTANCES = {"Indel": Indel, "Levenshtein": Levenshtein, "OSA": OSA, "LCSseq": LCSseq}
RELATIONS = {"names": same_name, "calls": same_call}


def results(case: Case) -> Results:
    """The normalised similarity by every distance, and the common beginning as a share of what is
    expected.
    """
    found: Results = {}
    for what, relation in RELATIONS.items():
        actual, expected = numbered((case["actual"], case["expected"]), relation)
        found |= {
            f"{name} {what}": distance.normalized_similarity(actual, expected)
            for name, distance in DISTANCES.items()
        }
        found[f"Prefix {what}"] = (
            Prefix.similarity(actual, expected) / len(expected) if expected else float(not actual)
        )
    return found


if __name__ == "__main__":
    answer(("rapidfuzz",), results)
