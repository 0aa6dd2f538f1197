"""Maximum bipartite matching: the masks of `scorers.alignment` come in, a largest set of pairs comes out.

networkx is imported here and nowhere else; see `scorers.alignment.load_matching`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import networkx


def maximum_matching(candidates: Mapping[int, int]) -> dict[int, int]:
    """A largest set of pairs (i, j) with bit `j` set in `candidates[i]`, each `i` and each `j` used once.

    Raises `RecursionError` for long chains, as the search recurses along an alternating path.
    """
    graph = networkx.Graph()
    lefts = {i: -1 - i for i in candidates}  # negative, to tell them from the right side
    graph.add_nodes_from(lefts.values())
    graph.add_edges_from((lefts[i], j) for i, mask in candidates.items() for j in _bits(mask))
    matching = networkx.bipartite.hopcroft_karp_matching(graph, top_nodes=lefts.values())
    return {i: matching[left] for i, left in lefts.items() if left in matching}


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
