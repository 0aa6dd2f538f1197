"""What an `Asker` tells of its work while it does it."""

from __future__ import annotations

from typing import Literal, Protocol

TokenKind = Literal["input", "output"]
CacheResult = Literal["hit", "joined", "miss"]


class Observer(Protocol):
    """Whoever counts; called in the event loop of the `Asker`. `model` is always `provider:model`."""

    def request(self, model: str, code: str, seconds: float) -> None:
        """One request ended: with an HTTP status, or `timeout`, `connection`, `address`,
        `too_large`, `cancelled`.
        """
        ...

    def tokens(self, model: str, kind: TokenKind, count: int) -> None:
        """Tokens that the server reports for one request."""
        ...

    def cost(self, model: str, usd: float) -> None:
        """What these tokens cost, where the price of the model is known."""
        ...

    def cached(self, model: str, how: CacheResult) -> None:
        """A question came whose answer was known, is under way, or has to be got."""
        ...


class Unobserved:
    """An `Observer` that counts nothing."""

    def request(self, model: str, code: str, seconds: float) -> None:
        """Nothing."""

    def tokens(self, model: str, kind: TokenKind, count: int) -> None:
        """Nothing."""

    def cost(self, model: str, usd: float) -> None:
        """Nothing."""

    def cached(self, model: str, how: CacheResult) -> None:
        """Nothing."""
