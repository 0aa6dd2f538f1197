"""NetworkX: the best pairing of calls as a clique of pairs, where some calls are optional and some
may come in any order.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import networkx

from .equal_calls import Relation, has_arguments, same_name
from .lines import Case, Results, answer

RELATIONS = {"name_only": same_name, "name_and_required_args": has_arguments}
REQUIRED = 100
"""What a pair with a required call is worth, in pairs with optional ones."""

Pair = tuple[int, int]


def results(case: Case) -> Results:
    """The F1 of a best pairing, for each way that order may count."""
    orders = {
        "in_order": (case["groups"], None),
        "parallel": (case["groups"], case["messages"]),
        "any_order": None,
    }
    return {
        f"{name} {mode}": f1(case, best_pairs(case, related(case, relation), order))
        for mode, relation in RELATIONS.items()
        for name, order in orders.items()
    }


def related(case: Case, relation: Relation) -> list[Pair]:
    """The pairs that there may be."""
    return [
        (i, j)
        for i, actual in enumerate(case["actual"])
        for j, expected in enumerate(case["expected"])
        if relation(actual, expected)
    ]


def best_pairs(case: Case, pairs: list[Pair], order: Any) -> list[Pair]:
    """As many pairs with required calls as possible, then as many pairs as possible, of which no
    two exclude each other.
    """
    graph = networkx.Graph()
    graph.add_nodes_from(
        (pair, {"worth": 1 if case["optional"][pair[1]] else 1 + REQUIRED}) for pair in pairs
    )
    graph.add_edges_from(both for both in combinations(pairs, 2) if not exclude(*both, order))
    chosen: list[Pair] = networkx.max_weight_clique(graph, weight="worth")[0]
    return chosen


def exclude(one: Pair, other: Pair, order: Any) -> bool:
    """Whether two pairs share a call, or cross where order counts."""
    if one[0] == other[0] or one[1] == other[1]:
        return True
    if order is None or (one[0] < other[0]) == (one[1] < other[1]):
        return False
    groups, messages = order
    if messages is not None and not any(
        same_block(groups, j, j + 1) for j in range(len(groups) - 1)
    ):
        return not same_block(messages, *sorted((one[0], other[0])))
    return not same_block(groups, *sorted((one[1], other[1])))


def same_block(groups: list[int | None], first: int, last: int) -> bool:
    """Whether all from the first to the last are of one group."""
    return groups[first] is not None and len(set(groups[first : last + 1])) == 1


def f1(case: Case, pairs: list[Pair]) -> float:
    """The F1 where optional calls are expected only when they were made."""
    expected = {j for j, optional in enumerate(case["optional"]) if not optional} | {
        j for _, j in pairs
    }
    calls = len(case["actual"]) + len(expected)
    return 2 * len(pairs) / calls if calls else 1.0


if __name__ == "__main__":
    answer(("networkx",), results)
