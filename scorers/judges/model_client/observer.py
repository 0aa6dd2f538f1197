"""The events that a `ModelClient` reports, for metrics and cost reports."""

from __future__ import annotations

from typing import Literal, Protocol

TokenKind = Literal["input", "output"]
CacheResult = Literal["hit", "joined", "miss"]


class Observer(Protocol):
    """Called in the event loop of the `ModelClient`. `model` is always `provider:model`."""

    def request(self, model: str, code: str, seconds: float) -> None:
        """One request ended. `code` is an HTTP status, or `timeout`, `connection`, `address`,
        `too_large` or `cancelled`.
        """
        ...

    def tokens(self, model: str, kind: TokenKind, count: int) -> None:
        """Token usage that the server reported for one request."""
        ...

    def cost(self, model: str, usd: float) -> None:
        """Cost of these tokens, if the price of the model is known."""
        ...

    def cached(self, model: str, how: CacheResult) -> None:
        """One cache look-up. `joined`: an identical question is in flight."""
        ...


class NullObserver:
    """An `Observer` that ignores all events."""

    def request(self, model: str, code: str, seconds: float) -> None:
        """Ignored."""

    def tokens(self, model: str, kind: TokenKind, count: int) -> None:
        """Ignored."""

    def cost(self, model: str, usd: float) -> None:
        """Ignored."""

    def cached(self, model: str, how: CacheResult) -> None:
        """Ignored."""
