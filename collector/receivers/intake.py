"""What every receiver hands on: a batch of decoded spans and log records, and the question whether there is room for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from collector.spans import LogRecord, Span


@dataclass(frozen=True, slots=True)
class Batch:
    """The valid part of one export request. `size` is in bytes, uncompressed."""

    spans: tuple[Span, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    size: int = 0


Accept: TypeAlias = Callable[[Batch], Awaitable[bool]]
"""Takes responsibility for a batch before the sender is answered; `False` means no room now, retry later."""
