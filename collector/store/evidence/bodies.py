"""Evidence as it is stored: JSON of a bounded size, compressed."""

from __future__ import annotations

import zstandard

from pathgauge.collector.core.evidence.evidence import Evidence, decode, encode

_MAX_DECODED_BYTES = 1 << 20
_LEVEL = 3


class EvidenceBodies:
    """Packs evidence. Only one thread at a time may use it."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)

    def packed(self, evidence: Evidence) -> bytes:
        """The bytes of the evidence. Values of scorers and senders may raise anything."""
        return self._compressor.compress(encode(evidence))


def unpacked(body: bytes) -> Evidence:
    """The evidence. Raises `ValueError` for what an incompatible version wrote."""
    try:
        return decode(zstandard.decompress(body, max_output_size=_MAX_DECODED_BYTES))
    except zstandard.ZstdError as error:
        raise ValueError(f"evidence cannot be decompressed: {error}") from error
