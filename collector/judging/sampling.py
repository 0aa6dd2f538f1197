"""Decides which invocations are judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from pathgauge.scorers.types import Invocation


@dataclass(frozen=True, slots=True)
class Sampling:
    """Judges a share of the traces: the same traces for every judge and in every process."""

    rate: float = 1.0
    of_scenario: Mapping[str, float] = field(default_factory=dict)
    """Rates of single scenarios, which replace `rate`."""
    never: frozenset[str] = frozenset()
    """Tenants whose traces are not judged."""

    def takes(self, invocation: Invocation, scenario: str | None) -> bool:
        """Whether to judge this invocation. A higher rate adds traces to those of a lower one."""
        if invocation.tenant in self.never:
            return False
        rate = self.of_scenario.get(scenario or "", self.rate)
        return _position(invocation.trace_id) < rate


def _position(trace_id: str) -> float:
    """A number from 0 to 1 that depends on the trace alone."""
    hashed = sha256(f"judge {trace_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(hashed[:8]) / 2**64
