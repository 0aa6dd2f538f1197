"""Pairs results of two versions in one scenario, in the order of their arrival.

A result is used once. Which results form a pair depends on the order of arrival alone and never on
scores, so a pair says nothing about later ones. The newest waiting results are taken first: they
were measured under the most similar conditions. While many results of one version wait, a pair
takes several of them, whose mean varies less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

MAX_BLOCK = 8
"""Results of one version in a pair. More reduce the variance of a difference only a little."""
_WAITING_FOR_EACH = 150
"""So many results must wait for each one that a pair takes. If a version gets no further results,
those that wait have to last.
"""


class Pair(NamedTuple):
    """Values of the candidate and of the baseline. One of the two sides has a single value."""

    candidate: Sequence[float]
    baseline: Sequence[float]


def pairs(values: Iterable[tuple[bool, float]]) -> Iterator[Pair]:
    """The pairs of values in the order of time, each with whether it is the candidate's."""
    candidate: list[float] = []
    baseline: list[float] = []
    for is_candidate, value in values:
        (candidate if is_candidate else baseline).append(value)
        if candidate and baseline:
            yield Pair(_taken(candidate), _taken(baseline))


def _taken(waiting: list[float]) -> list[float]:
    size = max(1, min(MAX_BLOCK, len(waiting) // _WAITING_FOR_EACH))
    taken = waiting[-size:]
    del waiting[-size:]
    return taken
