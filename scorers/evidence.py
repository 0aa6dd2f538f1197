"""Why a trajectory got its score: an alignment and the names come in, JSON details and one line for a person go out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from scorers.alignment import Alignment
from scorers.types import Json

MAX_NAMES = 5
"""Tools listed in an explanation; the details list all."""


def details(alignment: Alignment, actual_names: Sequence[str], expected_names: Sequence[str]) -> Mapping[str, Json]:
    """The alignment with names: `matched` [actual index, expected index, name], `missing` and `unexpected` [index, name], `counts`."""
    return {
        "matched": [[i, j, expected_names[j]] for i, j in alignment.pairs],
        "missing": [[j, expected_names[j]] for j in alignment.missing],
        "unexpected": [[i, actual_names[i]] for i in alignment.unexpected],
        "counts": {"matched": alignment.matched, "actual": alignment.actual, "expected": alignment.expected},
    }


def explanation(alignment: Alignment, actual_names: Sequence[str], expected_names: Sequence[str]) -> str:
    """For instance `2 of 3 expected calls matched; missing send_email; unexpected search_web x2`."""
    line = f"{alignment.matched} of {alignment.expected} expected calls matched" if alignment.expected else "no calls expected"
    if alignment.missing:
        line += f"; missing {listed([expected_names[j] for j in alignment.missing])}"
    if alignment.unexpected:
        line += f"; unexpected {listed([actual_names[i] for i in alignment.unexpected])}"
    return line


def listed(names: Sequence[str]) -> str:
    """Names with their number of occurrences, on one line."""
    counts = Counter(names)
    shown = [f"{name} x{count}" if count > 1 else name for name, count in list(counts.items())[:MAX_NAMES]]
    more = [f"{len(counts) - MAX_NAMES} more"] if len(counts) > MAX_NAMES else []
    return " ".join(", ".join(shown + more).split())
