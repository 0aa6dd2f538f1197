"""Request bodies are read whole, or refused before they cost more than the limits allow."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings, strategies as st

from pathgauge.collector.receivers.export import ReceiverLimits
from pathgauge.collector.receivers.http_body import BodyError, BodyReader, Compression

LIMITS = ReceiverLimits(max_request_bytes=1000, body_timeout_s=0.05, max_held_bytes=1500)


async def sent(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read(
    *chunks: bytes, compression: Compression = "none", limits: ReceiverLimits = LIMITS
) -> bytes:
    async with BodyReader(limits).read(sent(*chunks), compression) as body:
        return body


def test_an_identity_body_is_the_chunks_joined() -> None:
    assert asyncio.run(read(b"ab", b"", b"c")) == b"abc"


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=3), st.integers(1, 40))
def test_gzip_is_undone_however_it_is_cut_into_members_and_chunks(
    members: list[bytes], size: int
) -> None:
    packed = b"".join(gzip.compress(member) for member in members)
    chunks = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert asyncio.run(read(*chunks, compression="gzip")) == b"".join(members)


@settings(deadline=None)
@given(st.binary(max_size=1000), st.booleans(), st.integers(1, 40))
def test_zstd_is_undone_however_it_is_cut_into_chunks(
    content: bytes, has_size: bool, size: int
) -> None:
    packed = zstandard.compress(content) if has_size else streamed(content)
    chunks = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert asyncio.run(read(*chunks, compression="zstd")) == content


def with_file_name(packed: bytes, length: int) -> bytes:
    """gzip that carries a name: bytes on the wire that decompress to nothing."""
    return packed[:3] + b"\x08" + packed[4:10] + b"n" * length + b"\0" + packed[10:]


def streamed(content: bytes, **settings: Any) -> bytes:
    """zstd of a sender that does not know the size in advance."""
    stream = zstandard.ZstdCompressor(**settings).compressobj()
    return stream.compress(content) + stream.flush()


def with_large_window(content: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    return streamed(content, compression_params=parameters)


@pytest.mark.parametrize(
    ("chunks", "compression", "code", "message"),
    [
        pytest.param(
            [b"a" * 600, b"a" * 401], "none", "too_large", "more than 1,000 bytes", id="oversized"
        ),
        pytest.param(
            [gzip.compress(bytes(1001))],
            "gzip",
            "too_large",
            "more than 1,000 bytes when decompressed",
            id="one byte too many",
        ),
        pytest.param(
            [gzip.compress(bytes(50_000_000))[:1000]],
            "gzip",
            "too_large",
            "more than 1,000 bytes when decompressed",
            id="bomb",
        ),
        pytest.param(
            [gzip.compress(bytes(501)) * 2],
            "gzip",
            "too_large",
            "more than 1,000 bytes when decompressed",
            id="bomb of two members",
        ),
        pytest.param(
            [with_file_name(gzip.compress(b"abc"), 1000)],
            "gzip",
            "too_large",
            "more than 1,000 bytes",
            id="padded header",
        ),
        pytest.param(
            [gzip.compress(b"abc")[:-1]],
            "gzip",
            "undecodable",
            "the gzip stream ends early",
            id="cut off",
        ),
        pytest.param([], "gzip", "undecodable", "the gzip stream ends early", id="nothing"),
        pytest.param([b"plain"], "gzip", "undecodable", "not gzip: ", id="not gzip"),
        pytest.param(
            [gzip.compress(b"abc") + b"junk"],
            "gzip",
            "undecodable",
            "not gzip: ",
            id="junk after the end",
        ),
        pytest.param(
            [zstandard.compress(bytes(1001))],
            "zstd",
            "too_large",
            "more than 1,000 bytes when decompressed",
            id="zstd, one byte too many",
        ),
        pytest.param(
            [zstandard.compress(bytes(50_000_000))],
            "zstd",
            "too_large",
            "more than 1,000 bytes",
            id="zstd bomb of a stated size",
        ),
        pytest.param(
            [streamed(bytes(5_000_000))],
            "zstd",
            "too_large",
            "more than 1,000 bytes when decompressed",
            id="zstd bomb",
        ),
        pytest.param(
            [streamed(b"abc")[:-1]],
            "zstd",
            "undecodable",
            "the zstd frame ends early",
            id="zstd cut off",
        ),
        pytest.param([], "zstd", "undecodable", "the zstd frame ends early", id="nothing of zstd"),
        pytest.param([b"plain"], "zstd", "undecodable", "not zstd: ", id="not zstd"),
        pytest.param(
            [zstandard.compress(b"abc") * 2],
            "zstd",
            "undecodable",
            "bytes after the end of the zstd frame",
            id="two frames",
        ),
        pytest.param(
            [with_large_window(b"abc")],
            "zstd",
            "undecodable",
            "not zstd: ",
            id="window of 128 MiB",
        ),
    ],
)
async def test_refused_bodies(
    chunks: list[bytes], compression: Compression, code: str, message: str
) -> None:
    with pytest.raises(BodyError) as error:
        await read(*chunks, compression=compression)
    assert (error.value.code, str(error.value)[: len(message)]) == (code, message)


async def test_a_body_of_many_empty_gzip_members_is_refused() -> None:
    with pytest.raises(BodyError, match="more than 64 gzip streams in one body"):
        await read(gzip.compress(b"") * 65, compression="gzip", limits=ReceiverLimits())
    assert await read(gzip.compress(b"") * 64, compression="gzip", limits=ReceiverLimits()) == b""


async def test_bodies_of_exactly_the_limit_are_read() -> None:
    assert await read(b"a" * 1000) == b"a" * 1000
    assert await read(gzip.compress(b"a" * 1000), compression="gzip") == b"a" * 1000
    assert await read(streamed(b"a" * 1000), compression="zstd") == b"a" * 1000


async def test_a_refused_body_is_read_to_its_end_so_that_the_sender_gets_to_the_answer() -> None:
    chunks = sent(b"a" * 1001, b"b", b"c")
    with pytest.raises(BodyError):
        await BodyReader(LIMITS).read(chunks).__aenter__()
    assert [chunk async for chunk in chunks] == []


async def test_a_body_that_does_not_arrive_in_time_is_cut_off() -> None:
    async def trickle() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.Event().wait()

    with pytest.raises(BodyError) as error:
        await BodyReader(LIMITS).read(trickle()).__aenter__()
    assert (error.value.code, str(error.value)) == (
        "too_slow",
        "the body did not arrive within 0.05 s",
    )


async def paced(chunks: int, size: int, pause_s: float) -> AsyncIterator[bytes]:
    for _ in range(chunks):
        await asyncio.sleep(pause_s)
        yield b"a" * size


async def test_after_a_grace_a_body_that_trickles_is_cut_off() -> None:
    limits = ReceiverLimits(body_grace_s=0.1, min_body_rate=1000)
    began = asyncio.get_running_loop().time()
    with pytest.raises(BodyError) as error:
        await BodyReader(limits).read(paced(10_000, 5, 0.01)).__aenter__()
    assert (error.value.code, str(error.value)) == (
        "too_slow",
        "the body arrives at less than 1,000 bytes/s",
    )
    assert 0.1 <= asyncio.get_running_loop().time() - began < 5


async def test_a_body_may_arrive_slowly_for_as_long_as_the_rate_is_kept() -> None:
    limits = ReceiverLimits(body_grace_s=0.1, min_body_rate=1000)
    async with BodyReader(limits).read(paced(20, 500, 0.02)) as body:
        assert len(body) == 10_000


async def test_the_rate_is_not_asked_for_within_the_grace() -> None:
    limits = ReceiverLimits(body_grace_s=5, min_body_rate=1000)
    async with BodyReader(limits).read(paced(3, 1, 0.05)) as body:
        assert body == b"aaa"


async def test_the_rest_of_a_refused_body_is_not_waited_for_longer_than_for_a_body() -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b"a" * 1001
        await asyncio.Event().wait()

    with pytest.raises(BodyError) as error:
        await BodyReader(LIMITS).read(endless()).__aenter__()
    assert error.value.code == "too_large"


@pytest.mark.parametrize(
    ("compression", "pack"),
    [("none", bytes), ("gzip", gzip.compress), ("zstd", zstandard.compress)],
)
async def test_bodies_share_a_limit_until_they_are_answered(
    compression: Compression, pack: Callable[[bytes], bytes]
) -> None:
    def body(size: int) -> AbstractAsyncContextManager[bytes]:
        return reader.read(sent(pack(bytes(size))), compression)

    reader = BodyReader(LIMITS)
    async with body(1000) as first:
        with pytest.raises(BodyError) as error:
            await body(501).__aenter__()
        assert error.value.code == "busy"
        async with body(500) as second:
            assert (first, second) == (bytes(1000), bytes(500))
    async with body(1000), body(500):
        pass
