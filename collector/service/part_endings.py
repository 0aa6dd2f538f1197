"""Hooks for exceptions that nobody caught: they log all, and tell the end of an essential part."""

from __future__ import annotations

import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any

from pathgauge.collector.service.logging import log_unhandled, log_unhandled_in_thread
from pathgauge.collector.store.essential import EndedError

ENDED = "a part that the service needs has ended"

OnEnded = Callable[[EndedError], None]


def ending_in_thread(on_ended: OnEnded) -> Callable[[threading.ExceptHookArgs], None]:
    """A `threading.excepthook`. It calls `on_ended` in the thread that ends."""

    def hook(unhandled: threading.ExceptHookArgs) -> None:
        log_unhandled_in_thread(unhandled)
        if isinstance(unhandled.exc_value, EndedError):
            on_ended(unhandled.exc_value)

    return hook


def ending_in_loop(on_ended: OnEnded) -> Callable[[AbstractEventLoop, dict[str, Any]], None]:
    """An exception handler of an event loop."""

    def handle(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
        log_unhandled(loop, context)
        if isinstance(error := context.get("exception"), EndedError):
            on_ended(error)

    return handle
