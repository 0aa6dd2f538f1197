"""Evidence adjusted for the number of series, so that more series do not mean more false alarms.

This is e-BH (Wang and Ramdas, "False discovery rate control with e-values", arXiv:2009.02824),
which holds under any dependence between the series. In the order of evidence, the most first, the
j-th of N series keeps j / N of it, but each at least as much as those after it.
"""

from __future__ import annotations

from collections.abc import Sequence


def adjusted(evidence: Sequence[float]) -> list[float]:
    """The adjusted evidence of each series, in the same order. It is never above the evidence."""
    count = len(evidence)
    result = [0.0] * count
    best = 0.0
    for rank, index in enumerate(sorted(range(count), key=evidence.__getitem__)):
        # Rank 0 is the series with the least evidence.
        best = max(best, evidence[index] * ((count - rank) / count))
        result[index] = best
    return result
