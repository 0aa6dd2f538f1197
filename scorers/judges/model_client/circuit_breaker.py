"""A circuit breaker: outcomes of calls come in, and whether another one makes sense goes out.

It opens after several failures in a row, lets one call through after a pause to find out, and
closes when that one succeeds. What calls tell that began before it opened changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

FAILURES = 5
"""In a row, until it opens."""
PAUSE_S = 30.0

Passage = Literal["call", "probe"]
"""What a call is that was let through: one of many, or the one that finds out."""


class Breaker:
    """Of one model. `clock` gives seconds that never go back."""

    def __init__(
        self, clock: Callable[[], float], failures: int = FAILURES, pause: float = PAUSE_S
    ) -> None:
        self._clock = clock
        self._failures = failures
        self._pause = pause
        self._in_a_row = 0
        self._opened: float | None = None
        self._probing = False

    @property
    def lets_through(self) -> bool:
        """Whether a call may begin now."""
        return self._opened is None or (
            not self._probing and self._clock() - self._opened >= self._pause
        )

    def begin(self) -> Passage | None:
        """Begin a call, if one may; then one of `succeeded`, `failed` and `abandoned` must follow."""
        if not self.lets_through:
            return None
        self._probing = self._opened is not None
        return "probe" if self._probing else "call"

    def succeeded(self, passage: Passage) -> None:
        """The server answered, whatever it said."""
        if passage == "probe":
            self._opened = None
            self._probing = False
        if self._opened is None:
            self._in_a_row = 0

    def failed(self, passage: Passage) -> None:
        """The server did not answer, or failed."""
        if passage == "probe":
            self._opened = self._clock()
            self._probing = False
        elif self._opened is None:
            self._in_a_row += 1
            if self._in_a_row >= self._failures:
                self._opened = self._clock()

    def abandoned(self, passage: Passage) -> None:
        """The call ended without telling anything about the server; when it was to find out, the
        next one will.
        """
        if passage == "probe":
            self._probing = False
