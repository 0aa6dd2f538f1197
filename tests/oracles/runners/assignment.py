"""SciPy: the largest one-to-one matching of two sets of calls, by its two algorithms."""

from __future__ import annotations

import numpy
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from .equal_calls import has_arguments, same_call, same_name
from .lines import Case, Results, answer

RELATIONS = {
    "name_only": same_name,
    "name_and_args": same_call,
    "name_and_required_args": has_arguments,
}


def results(case: Case) -> Results:
    """The F1 of the pairs."""
    found = {}
    for mode, relation in RELATIONS.items():
        pairs = [
            [int(relation(one, other)) for other in case["expected"]] for one in case["actual"]
        ]
        matrix = numpy.array(pairs, dtype=numpy.int8).reshape(
            len(case["actual"]), len(case["expected"])
        )
        found[f"linear_sum_assignment {mode}"] = f1(
            int(matrix[linear_sum_assignment(matrix, maximize=True)].sum()), *matrix.shape
        )
        found[f"maximum_bipartite_matching {mode}"] = f1(
            int((maximum_bipartite_matching(csr_array(matrix)) >= 0).sum()), *matrix.shape
        )
    return found


def f1(pairs: int, actual: int, expected: int) -> float:
    """The harmonic mean of precision and recall, by their definitions."""
    if not pairs:
        return float(actual == expected == 0)
    precision, recall = pairs / actual, pairs / expected
    return 2 * precision * recall / (precision + recall)


if __name__ == "__main__":
    answer(("scipy", "numpy"), results)
