"""A circuit breaker: stops calls to a model that keeps failing.

It opens after several consecutive failures. After a pause it allows one probe, and closes when the
probe succeeds. Results of calls that began before it opened are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pathgauge.scorers.judges.model_client.failures import ServerState

FAILURES = 5
"""Consecutive failures that open the circuit."""
PAUSE_S = 30.0

Permit = Literal["call", "probe"]
"""An ordinary call, or the one probe of an open circuit."""


class Breaker:
    """The circuit breaker of one model."""

    def __init__(
        self, clock: Callable[[], float], failures: int = FAILURES, pause: float = PAUSE_S
    ) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self._max_failures = failures
        self._pause = pause
        self._consecutive_failures = 0
        self._opened_at: float | None = None
        self._probing = False

    @property
    def allows_calls(self) -> bool:
        """Whether a call may begin now."""
        if self._opened_at is None:
            return True
        return not self._probing and self._clock() - self._opened_at >= self._pause

    def begin(self) -> Permit | None:
        """Begin a call; `None` if none is allowed. `record` must follow."""
        if not self.allows_calls:
            return None
        self._probing = self._opened_at is not None
        return "probe" if self._probing else "call"

    def record(self, permit: Permit, server: ServerState) -> None:
        """Record what a call showed about the server.

        `up`: it answered, even with an error. `down`: it failed or did not answer. `unknown`: the
        call ended without showing either; after such a probe the next call becomes the probe.
        """
        if permit == "probe":
            self._probing = False
        match server:
            case "up":
                self._succeeded(permit)
            case "down":
                self._failed(permit)

    def _succeeded(self, permit: Permit) -> None:
        if permit == "probe":
            self._opened_at = None
        if self._opened_at is None:
            self._consecutive_failures = 0

    def _failed(self, permit: Permit) -> None:
        if permit == "probe":
            self._opened_at = self._clock()
        elif self._opened_at is None:
            self._consecutive_failures += 1
            if self._consecutive_failures >= self._max_failures:
                self._opened_at = self._clock()
