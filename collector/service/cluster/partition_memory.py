"""Divides the memory of a scorer among its partitions."""

from __future__ import annotations

from dataclasses import replace

from pathgauge.collector.service.memory.plan import MemoryPlan

MAX_PARTITIONS_SHARING = 8
"""Each partition may use this share of the memory that the configuration gives to open traces: a
scorer usually has no more partitions.
"""


def plan_of_partition(plan: MemoryPlan, partitions: int) -> MemoryPlan:
    """The plan of each partition, if a process may have so many."""
    share = min(partitions, MAX_PARTITIONS_SHARING)
    assembly = plan.config.assembly
    bounds = {
        key: getattr(assembly, key) // share for key in ("max_open_bytes", "max_retained_bytes")
    }
    return replace(
        plan,
        config=plan.config.with_changes({"assembly": assembly.model_copy(update=bounds)}),
        max_conversation_bytes=plan.max_conversation_bytes // share,
        max_queue_bytes=plan.max_queue_bytes // share,
        max_judge_queue_bytes=plan.max_judge_queue_bytes // share,
        max_judge_cache_bytes=plan.max_judge_cache_bytes // share,
    )
