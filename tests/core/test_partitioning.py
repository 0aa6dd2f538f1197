"""Which partition a trace or a conversation belongs to, and what is remembered of it."""

from __future__ import annotations

import tracemalloc

import pytest

from pathgauge.collector.core.partitioning import key_hash, partition_of_conversation


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", 0x811C9DC5 - (1 << 32)),
        ("a", 0xE40C292C - (1 << 32)),
        ("foobar", 0xBF9CF968 - (1 << 32)),
        ("hello", 0x4F9F2CAB),
    ],
)
def test_the_hash_is_that_of_the_published_test_vectors_without_its_sign(
    key: str, value: int
) -> None:
    assert key_hash(key) == abs(value)


def test_ids_that_senders_invent_take_a_bounded_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(10):
            partition_of_conversation(("", f"{number} {'x' * 10_000}", "scenario"), 4)
        assert tracemalloc.get_traced_memory()[0] < 50_000
    finally:
        tracemalloc.stop()
