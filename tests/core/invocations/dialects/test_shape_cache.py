"""What is remembered about the names and keys of spans, and that it stays small."""

from __future__ import annotations

import tracemalloc

from pathgauge.collector.core.invocations.dialects.shape_cache import ShapeCache
from pathgauge.collector.core.otlp.spans import Resource, Scope, Span
from support import wire
from support.dialects import INSTALLED


def test_values_are_kept_until_there_are_too_many() -> None:
    cache: ShapeCache[int] = ShapeCache(2)
    assert [cache.keep(("a", "b"), 1), cache.keep("a", 2)] == [1, 2]
    assert [cache.get(("a", "b")), cache.get("a"), cache.get(("b", "a"))] == [1, 2, None]
    cache.keep("c", 3)
    assert [cache.get(("a", "b")), cache.get("a"), cache.get("c")] == [None, None, 3]


def test_long_texts_are_not_kept() -> None:
    cache: ShapeCache[int] = ShapeCache(2)
    assert [cache.keep(("x" * 4_000, "y" * 97), 1), cache.keep("z" * 4_097, 2)] == [1, 2]
    assert [cache.get(("x" * 4_000, "y" * 97)), cache.get("z" * 4_097)] == [None, None]


def test_names_and_keys_that_senders_invent_take_a_bounded_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(200):
            long = f"agent {number}" * 4_000
            key = wire.attribute(wire.field(1, b"x"), f"gen_ai.{long}".encode())
            for name, scope in ((long, "mine"), ("agent", long)):
                INSTALLED.classify(Span(wire.span(name, more=key), Resource(), Scope(scope)))
        assert tracemalloc.get_traced_memory()[0] < 4 << 20
    finally:
        tracemalloc.stop()
