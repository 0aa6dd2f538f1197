"""What a criterion in shadow said about an invocation, as it is stored beside the active results.

Plain values: no alert, window or count of the active criteria can mistake it for one of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class ShadowResult(NamedTuple):
    """The score of one criterion."""

    name: str
    scorer: str
    """Name and version."""
    value: float | None
    reason: str | None
    verdict: str
    threshold: float | None
    judge: str = ""
    """For a criterion that asks a model: `model@template`."""


class Shadowed(NamedTuple):
    """All scores in shadow of one invocation."""

    setup: str
    """Fingerprint of the criteria and references: those of two setups are not mixed."""
    reference: str | None
    """Version of the reference."""
    results: Sequence[ShadowResult]


Verdicts = tuple[tuple[str, str], ...]
"""Names of criteria in shadow, each with its verdict."""


class AwaitedShadow(NamedTuple):
    """Judges in shadow, which are asked when the active ones have answered."""

    setup: str
    first: bool
    """Whether nothing that they said was counted before."""
    verdicts: Mapping[str, str]
    """What the active criteria say, by name, as far as it is known."""
    asked: bool = False
    """Whether it is their turn."""
