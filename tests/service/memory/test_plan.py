"""How the bounds of all parts share the memory below a limit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.config import Config
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.receivers.memory_guard import Kind
from pathgauge.collector.service.memory.limits import MemoryLimit
from pathgauge.collector.service.memory.parts import needed_bytes, parts, reading_bytes
from pathgauge.collector.service.memory.plan import MemoryPlan, fit, without_limit
from support.examples import examples

MiB = 1 << 20
JUDGE = {
    "model": "local:m",
    "providers": {"local": {"base_url": "http://127.0.0.1:1", "allow_private": True}},
}
USED = 60 * MiB
"""What the process uses before it starts."""
ASSEMBLY = ("max_open_bytes", "max_retained_bytes", "max_trace_bytes")


def cgroup(size: int) -> MemoryLimit:
    return MemoryLimit("resident", size * MiB, "cgroup memory.max")


def use(_: Kind) -> int:
    return USED


def config(**sections: Any) -> Config:
    return Config.model_validate(sections)


def http(size: str) -> dict[str, Any]:
    return {"otlp": {"protocols": {"http": {"max_request_bytes": size}}}}


def request_bytes(plan: MemoryPlan) -> dict[str, int]:
    protocols = plan.config.receivers.otlp.protocols
    assert protocols.grpc is not None
    assert protocols.http is not None
    return {
        "grpc": protocols.grpc.max_request_bytes,
        "http": protocols.http.max_request_bytes,
    }


def test_without_a_limit_nothing_changes() -> None:
    plan = fit(config(), [], use)
    assert plan == without_limit(config())
    assert (plan.config, plan.ceilings, plan.limit, plan.lowered) == (config(), (), None, {})
    assert (plan.max_json_tokens, plan.max_arriving) == (1_500_000, 64)
    assert (plan.max_queue_bytes, plan.max_cached_bytes) == (16 * MiB, 16 * MiB)


@pytest.mark.parametrize("sections", [{}, {"store": "memory"}, {"judge": JUDGE}])
def test_with_enough_memory_only_messages_that_arrive_are_limited(sections: dict[str, Any]) -> None:
    found = fit(config(**sections), [cgroup(2048)], use)
    wanted = without_limit(config(**sections))
    assert found.lowered == {}
    assert found.config == wanted.config
    assert (found.max_json_tokens, found.max_queue_bytes) == (
        wanted.max_json_tokens,
        wanted.max_queue_bytes,
    )
    assert 8 <= found.max_arriving < 64
    assert fit(config(**sections), [cgroup(8192)], use).max_arriving == 64


def test_with_less_memory_every_bound_is_lowered() -> None:
    plan, wanted = fit(config(), [cgroup(400)], use), without_limit(config())
    assert plan.limit == cgroup(400)
    assert sorted(plan.lowered) == sorted(part.name for part in parts(config()))
    for key in ASSEMBLY:
        assert getattr(plan.config.assembly, key) < getattr(wanted.config.assembly, key)
    for name in ("max_conversation_bytes", "max_queue_bytes", "max_cached_bytes"):
        assert 0 < getattr(plan, name) < getattr(wanted, name)
    assert 100_000 < plan.max_json_tokens < wanted.max_json_tokens
    assert plan.max_arriving == 2
    assert all(4 * MiB <= size <= 16 * MiB for size in request_bytes(plan).values())


def test_configured_values_are_kept_and_the_others_lowered_further() -> None:
    sections = {"assembly": {"max_open_bytes": "100MiB"}, "receivers": http("16MiB")}
    plan, other = fit(config(**sections), [cgroup(512)], use), fit(config(), [cgroup(512)], use)
    assert plan.config.assembly.max_open_bytes == 100 * MiB
    assert request_bytes(plan)["http"] == 16 * MiB
    assert plan.config.assembly.max_retained_bytes < other.config.assembly.max_retained_bytes
    assert "assembly.max_open_bytes" not in plan.lowered


def test_a_low_configured_value_leaves_more_for_the_others() -> None:
    plan = fit(
        config(assembly={"max_open_bytes": "4MiB", "max_trace_bytes": "1MiB"}), [cgroup(400)], use
    )
    other = fit(config(), [cgroup(400)], use)
    assert plan.config.assembly.max_open_bytes == 4 * MiB
    assert plan.max_conversation_bytes > other.max_conversation_bytes


def test_a_trace_fits_into_the_memory_of_open_traces() -> None:
    assembly = fit(
        config(assembly={"max_trace_bytes": "16MiB"}), [cgroup(320)], use
    ).config.assembly
    assert (assembly.max_trace_bytes, assembly.max_open_bytes >= 16 * MiB) == (16 * MiB, True)
    assembly = fit(config(assembly={"max_open_bytes": "16MiB"}), [cgroup(700)], use).config.assembly
    assert assembly.max_trace_bytes <= assembly.max_open_bytes == 16 * MiB


def problems(sections: dict[str, Any], limit: MemoryLimit) -> list[str]:
    """Why the bounds do not fit."""
    try:
        fit(config(**sections), [limit], use)
    except ConfigError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    "limit", [cgroup(200), MemoryLimit("address_space", 200 * MiB, "ulimit -v")]
)
def test_a_limit_that_is_too_low_is_an_error_with_the_lowest_possible_limit(
    limit: MemoryLimit,
) -> None:
    [problem] = problems({}, limit)
    text, _, least = problem.removesuffix("MiB").rpartition(" ")
    assert text == f"the memory limit ({limit.source}) is 200MiB, expected at least"
    enough = limit._replace(bytes=int(least) * MiB)
    assert problems({}, enough) == []
    assert problems({}, enough._replace(bytes=enough.bytes - MiB)) != []


def open_traces(size: str) -> dict[str, Any]:
    return {"assembly": {"max_open_bytes": size}}


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        (open_traces, "assembly.max_open_bytes"),
        (
            lambda size: {"receivers": http(size)},
            "receivers.otlp.protocols.http.max_request_bytes",
        ),
    ],
)
def test_a_configured_value_that_cannot_fit_is_an_error_with_the_highest_possible_value(
    sections: Callable[[str], dict[str, Any]], key: str
) -> None:
    [problem] = problems(sections("512MiB"), cgroup(500))
    found = re.fullmatch(r"(.*): found 512MiB, expected at most (\d+)MiB: (.*)", problem)
    assert found is not None
    assert found[1] == key
    assert found[3] == "the memory limit (cgroup memory.max) is 500MiB"
    assert problems(sections(f"{found[2]}MiB"), cgroup(500)) == []
    assert problems(sections(f"{int(found[2]) + 1}MiB"), cgroup(500)) != []


def test_all_configured_values_that_cannot_fit_together_are_named() -> None:
    sections = {"assembly": {"max_open_bytes": "300MiB", "max_retained_bytes": "300MiB"}}
    assert [problem.partition(", ")[0] for problem in problems(sections, cgroup(500))] == [
        "assembly.max_open_bytes: found 300MiB",
        "assembly.max_retained_bytes: found 300MiB",
    ]


def test_of_several_limits_the_one_that_leaves_least_decides_and_all_are_watched() -> None:
    limits = [cgroup(700), MemoryLimit("address_space", 450 * MiB, "ulimit -v")]
    plan = fit(config(), limits, lambda kind: {"resident": 60, "address_space": 180}[kind] * MiB)
    assert plan.limit == limits[1]
    assert [ceiling.kind for ceiling in plan.ceilings] == ["resident", "address_space"]
    assert all(
        ceiling.bytes < limit.bytes for ceiling, limit in zip(plan.ceilings, limits, strict=True)
    )


@settings(max_examples=examples(30))
@given(st.integers(300, 3000), st.integers(0, 60), st.sampled_from([{}, {"store": "memory"}]))
def test_all_parts_and_one_request_fit_below_the_ceiling(
    size: int, used: int, sections: dict[str, Any]
) -> None:
    plan = fit(config(**sections), [cgroup(size)], lambda _: used * MiB)
    assembly = plan.config.assembly
    sizes = {
        "assembly.max_open_bytes": assembly.max_open_bytes,
        "assembly.max_retained_bytes": assembly.max_retained_bytes,
        "assembly.max_trace_bytes": assembly.max_trace_bytes,
        "decoding of one request": max(
            160 * plan.max_json_tokens, 4 * max(request_bytes(plan).values())
        ),
        "open conversations": plan.max_conversation_bytes,
        "queue of the pipeline": plan.max_queue_bytes,
        "cache of the journal": plan.max_cached_bytes,
    }
    [ceiling] = plan.ceilings
    needed = needed_bytes(config(**sections), parts(config(**sections)), sizes)
    assert used * MiB + needed - reading_bytes(sizes) <= ceiling.bytes
    assert ceiling.bytes + reading_bytes(sizes) <= size * MiB


@settings(max_examples=examples(30))
@given(st.integers(300, 2000), st.integers(1, 500))
def test_more_memory_never_lowers_a_bound(size: int, more: int) -> None:
    small, large = (fit(config(), [cgroup(limit)], use) for limit in (size, size + more))
    for key in ASSEMBLY:
        assert getattr(small.config.assembly, key) <= getattr(large.config.assembly, key)
    assert small.max_json_tokens <= large.max_json_tokens
    assert request_bytes(small)["grpc"] <= request_bytes(large)["grpc"]
