"""What a criterion in shadow said about an invocation, as it is stored beside the active results.

Plain values: no alert, window or count of the active criteria can mistake it for one of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class Shadowed(NamedTuple):
    """All scores in shadow of one invocation."""

    setup: str
    """Fingerprint of the criteria and references: those of two setups are not mixed."""
    reference: str | None
    """Version of the reference."""
    results: Sequence[ShadowResult]
