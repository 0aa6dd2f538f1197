"""Damages bytes that some reader understands, and holds that reader to its laws: seeds come in, a
failed test with the culprit goes out.

`FUZZ_EXECUTIONS` says how often, 200,000 for a cheap reader in `make fuzz`; `FUZZ_SEED` repeats a
run.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random
from typing import NoReturn

import pytest

EXECUTIONS = int(os.environ.get("FUZZ_EXECUTIONS", "300"))
SEED = int(os.environ.get("FUZZ_SEED") or time.time_ns() % 10**9)
LONGEST_S = 0.1
"""Of processor time for any input; the best of `TRIES` counts, as machines are busy."""
TRIES = 5
GIVE_UP_S = 10
FEWEST = 5
"""Executions in a batch."""
MAX_INSERTED = 5_000
"""Bytes at a time: these are laws of damage, not of size."""

_INTERESTING = (0x00, 0x01, 0x0A, 0x12, 0x20, 0x7F, 0x80, 0xFF)


@dataclass(frozen=True)
class Target:
    """A reader of bytes."""

    name: str
    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = ()
    """What it may raise."""
    words: Sequence[bytes] = ()
    """What means something to it."""
    share: float = 1.0
    """Of `EXECUTIONS`; less for a reader that takes longer."""


def hold(target: Target, batch: int, batches: int) -> None:
    """Run one of several batches of executions. Fails with the seed and the input."""
    for number in range(max(round(EXECUTIONS * target.share) // batches, FEWEST)):
        seed = f"{SEED}/{target.name}/{batch}/{number}"
        data = damaged(target.seeds, target.words, Random(seed))
        try:
            seconds = _shortest(target, data)
        except Exception as error:
            pytest.fail(f"FUZZ_SEED={SEED}: {seed}: {error!r} of {data!r}", pytrace=False)
        if seconds > LONGEST_S:
            pytest.fail(f"FUZZ_SEED={SEED}: {seed}: {seconds:.2f} s for {data!r}", pytrace=False)


def damaged(seeds: Sequence[bytes], words: Sequence[bytes], random: Random) -> bytes:
    """One of the seeds, changed in one to four places."""
    data = bytearray(random.choice(seeds))
    for _ in range(random.choice((1, 1, 2, 4))):
        start = random.randrange(len(data) + 1)
        end = min(len(data), start + random.choice((1, 1, 2, 8, 64)))
        match random.randrange(8):
            case 0 if start < len(data):
                data[start] ^= 1 << random.randrange(8)
            case 1 if start < len(data):
                data[start] = random.choice(_INTERESTING)
            case 2:
                del data[start:end]
            case 3:
                data[start:start] = data[start:end] * random.choice((1, 2, 100))
            case 4:
                other = random.choice(seeds)
                piece = random.randrange(len(other))
                data[start:end] = other[piece : piece + random.choice((1, 8, 64))]
            case 5:
                del data[start:]
            case 6 if words:
                data[start:end] = random.choice(words)
            case _:
                word = random.choice(words or (b"\xff",))
                data[start:start] = word * min(
                    random.choice((1, 1, 3, 200)), MAX_INSERTED // len(word)
                )
    return bytes(data)


def _shortest(target: Target, data: bytes) -> float:
    """Seconds that the target needs when the machine lets it."""
    shortest = float(GIVE_UP_S)
    for _ in range(TRIES):
        began = time.thread_time()
        with _deadline(), suppress(*target.refusals):
            target.read(data)
        shortest = min(shortest, time.thread_time() - began)
        if shortest <= LONGEST_S:
            break
    return shortest


@contextmanager
def _deadline() -> Iterator[None]:
    """What never ends takes all memory with it, and with that the seed that would have told."""

    def give_up(*_: object) -> NoReturn:
        raise TimeoutError(f"still reading after {GIVE_UP_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, GIVE_UP_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
