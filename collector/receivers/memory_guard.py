"""Admits requests only while their memory fits below the memory limit of the process.

The bounds of single parts cannot see what the interpreter, gRPC and the allocator need beside them.
So the memory that the process uses is measured, and a request reserves what decoding it may need.
A request that does not fit is refused before it takes memory; its sender is told to retry.
"""

from __future__ import annotations

import ctypes
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["resident", "address_space", "data"]
"""What a limit counts: memory in use; or memory that is mapped, all of it or the writable part."""

STATM = "/proc/self/statm"
_FIELDS: Mapping[Kind, Callable[[list[int]], int]] = {
    "resident": lambda pages: pages[1] - pages[2],  # the kernel can drop pages of files
    "address_space": lambda pages: pages[0],
    "data": lambda pages: pages[5],
}
_MAX_STATM_BYTES = 256
_TRIM_EVERY_S = 1.0


class NoMemoryError(Exception):
    """There is no memory for a request at the moment."""

    def __init__(self) -> None:
        super().__init__("the memory limit is near, try again")


class Ceiling(NamedTuple):
    """How much memory the process may use before requests are refused."""

    kind: Kind
    bytes: int


class MemoryUse:
    """Reads how much memory this process uses."""

    def __init__(self) -> None:
        # Opened now, because it is needed when no file descriptor is left, too.
        self._statm = os.open(STATM, os.O_RDONLY | os.O_CLOEXEC)

    def __call__(self, kind: Kind) -> int:
        """In bytes."""
        pages = list(map(int, os.pread(self._statm, _MAX_STATM_BYTES, 0).split()))
        return _FIELDS[kind](pages) * resource.getpagesize()

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self._statm)


def trim() -> None:
    """Return free memory to the system that glibc keeps between blocks in use."""
    with suppress(AttributeError, OSError):  # other C libraries have no malloc_trim
        ctypes.CDLL(None).malloc_trim(0)


class MemoryGuard:
    """For the thread of the receivers. Without `ceilings`, everything fits."""

    def __init__(
        self,
        ceilings: Sequence[Ceiling] = (),
        use: Callable[[Kind], int] | None = None,
        on_refused: Callable[[], object] = lambda: None,
        *,
        trim: Callable[[], object] = trim,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`use` returns the used bytes of a kind. `on_refused` is called for every refusal."""
        self.ceilings = ceilings
        self._use = use or (MemoryUse() if ceilings else lambda _: 0)
        self._on_refused = on_refused
        self._trim = trim
        self._now = now
        self._reserved = 0
        self._trim_at = 0.0

    def fits(self, size: int = 0) -> bool:
        """Whether `size` bytes are left beside what is used and reserved."""
        needed = self._reserved + size
        return all(self._use(kind) + needed <= most for kind, most in self.ceilings)

    def check(self, size: int) -> None:
        """Raise `NoMemoryError` unless `size` bytes are left."""
        if self.fits(size):
            return
        now = self._now()
        if now >= self._trim_at:
            self._trim_at = now + _TRIM_EVERY_S
            self._trim()
            if self.fits(size):
                return
        self._on_refused()
        raise NoMemoryError

    @contextmanager
    def reserved(self, size: int) -> Iterator[None]:
        """Reserve `size` bytes as long as the context lasts. Raises `NoMemoryError`."""
        self.check(size)
        self._reserved += size
        try:
            yield
        finally:
            self._reserved -= size
