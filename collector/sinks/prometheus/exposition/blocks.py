"""Parts of an exposition, each compressed once and joined into one gzip stream at every scrape.

The text of 10,000 scenarios has tens of megabytes, and compresses to a thirtieth. So the text that
is kept between scrapes is kept compressed. A part ends on a whole byte and refers to no other, so
parts can be joined as they are. The checksum of the whole follows from theirs.

zlib releases the interpreter lock while it works. So compression beside the scoring thread does not
stop it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

LEVEL = 1
"""Compared with level 6: a third of the time, and half as many bytes more."""
MAX_LIVE_BYTES = 1 << 16
"""Text that is not kept is compressed in parts of about this size."""

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
"""Of gzip: no name, no time, the fastest compression, an unknown system."""
_LAST = b"\x03\x00"
"""An empty part that ends the stream."""
_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31


class Block(NamedTuple):
    """A compressed part."""

    deflated: bytes
    checksum: int
    """CRC-32 of the part before compression."""
    size: int
    """Bytes before compression."""


EMPTY = Block(b"", 0, 0)


def compressed(part: bytes) -> Block:
    """Compress a part."""
    if not part:
        return EMPTY
    deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = deflate.compress(part) + deflate.flush(zlib.Z_FULL_FLUSH)
    return Block(deflated, zlib.crc32(part), len(part))


def inflated(block: Block) -> bytes:
    """The part before compression."""
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(block.deflated)


def all_compressed(parts: Iterable[bytes | Block]) -> Iterator[Block]:
    """Compress the parts that are not compressed yet, several of them together."""
    live: list[bytes] = []
    size = 0
    for part in parts:
        if part is EMPTY:
            continue
        if isinstance(part, bytes):
            live.append(part)
            size += len(part)
        if live and (isinstance(part, Block) or size >= MAX_LIVE_BYTES):
            yield compressed(b"".join(live))
            live.clear()
            size = 0
        if isinstance(part, Block):
            yield part
    if live:
        yield compressed(b"".join(live))


def gzipped(blocks: Iterable[Block]) -> bytes:
    """One gzip stream of all parts."""
    checksum = size = 0
    parts = [_HEADER]
    for block in blocks:
        parts.append(block.deflated)
        checksum = _multiply(_power(block.size), checksum) ^ block.checksum
        size += block.size
    parts += (_LAST, struct.pack("<II", checksum, size & 0xFFFFFFFF))
    return b"".join(parts)


def _times_x(b: int) -> int:
    return b >> 1 ^ _POLYNOMIAL if b & 1 else b >> 1


def _shifted(b: int) -> int:
    """A polynomial with powers that are higher by four."""
    for _ in range(4):
        b = _times_x(b)
    return b


_SHIFTED = [_shifted(b) for b in range(16)]


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials over GF(2), modulo that of CRC-32, lowest power first. Four
    powers of `a` in one step.
    """
    b1 = _times_x(b)
    b2 = _times_x(b1)
    b3 = _times_x(b2)
    multiples = [0, b3, b2, b2 ^ b3]
    multiples += [one ^ b1 for one in multiples]
    multiples += [one ^ b for one in multiples]
    product = multiples[a & 15]
    for shift in range(4, 32, 4):
        product = product >> 4 ^ _SHIFTED[product & 15] ^ multiples[a >> shift & 15]
    return product


@lru_cache(1 << 14)
def _power(size: int) -> int:
    """x to the power of the number of bits: appending so many bytes multiplies a checksum by it."""
    power, square = _ONE, _ONE >> 8
    while size:
        if size & 1:
            power = _multiply(power, square)
        square = _multiply(square, square)
        size >>= 1
    return power
