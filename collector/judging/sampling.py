"""Which invocations are judged: rates come in, a decision about each trace goes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from pathgauge.scorers.types import Invocation


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which invocations are judged: a share of the traces, the same ones for every judge and in
    every process.
    """

    rate: float = 1.0
    of_scenario: Mapping[str, float] = field(default_factory=dict)
    """Rates of single scenarios, instead of the common one."""
    never: frozenset[str] = frozenset()
    """Tenants whose traces are not judged."""

    def takes(self, invocation: Invocation, scenario: str | None) -> bool:
        """Whether this one is judged. A higher rate takes what a lower one takes, and more."""
        if invocation.tenant in self.never:
            return False
        rate = self.of_scenario.get(scenario or "", self.rate)
        place = (
            int.from_bytes(
                sha256(f"judge {invocation.trace_id}".encode("utf-8", "surrogatepass")).digest()[:8]
            )
            / 2**64
        )
        return place < rate
