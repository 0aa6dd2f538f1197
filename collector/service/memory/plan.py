"""Fits the bounds of all parts into the memory limit of the process.

With enough memory, all bounds have their defaults. With less, every bound without a value in the
configuration is lowered, each by the same share of the way from its default to its lowest value. If
that is not enough, the collector does not start: it would only be ended later, with requests in
progress.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pathgauge.collector.config import Config
from pathgauge.collector.core.documents import ConfigError, Problem
from pathgauge.collector.core.otlp import DecodeLimits
from pathgauge.collector.receivers.export import JSON_TOKEN_BYTES, PROTOBUF_COST, ReceiverLimits
from pathgauge.collector.receivers.grpc_calls import ARRIVING_COST
from pathgauge.collector.receivers.memory_guard import Ceiling, Kind
from pathgauge.collector.service.memory import parts as names
from pathgauge.collector.service.memory.limits import MemoryLimit
from pathgauge.collector.service.memory.parts import (
    MiB,
    Part,
    needed_bytes,
    parts,
    reading_bytes,
)
from pathgauge.collector.service.memory.saving import MAX_THREADS, STACK_BYTES

_USABLE_SHARE: Mapping[Kind, float] = {"resident": 0.9, "address_space": 0.97, "data": 0.97}
"""The rest is for what is not measured: buffers of the kernel, stacks that grow."""
_FILE_BYTES: Mapping[Kind, int] = {"resident": 32 * MiB, "address_space": 0, "data": 0}
"""Pages of programs and files in use, which the cgroup counts and the guard does not."""
_START_BYTES = 12 * MiB
"""What a start takes after the configuration was read, without the stacks of threads."""
_STEPS = 1000
_MAX_ARRIVING = ReceiverLimits().max_arriving
_MAX_JSON_TOKENS = DecodeLimits().max_json_tokens

_Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """How the memory is shared. Sizes are in bytes."""

    config: Config
    """With the keys that were lowered."""
    max_conversation_bytes: int
    max_queue_bytes: int
    """Requests that wait in memory for the pipeline."""
    max_cached_bytes: int
    """Requests that were read from the journal."""
    max_judge_queue_bytes: int
    max_judge_cache_bytes: int
    max_json_tokens: int
    """In one request."""
    max_arriving: int = _MAX_ARRIVING
    """gRPC messages that are read at the same time."""
    ceilings: Sequence[Ceiling] = ()
    limit: MemoryLimit | None = None
    """The limit that leaves the least memory."""
    lowered: Mapping[str, str] = field(default_factory=dict)
    """The bounds that are lower than their defaults, as text."""


def fit(config: Config, limits: Sequence[MemoryLimit], used: Callable[[Kind], int]) -> MemoryPlan:
    """Share the memory below `limits`. `used` returns what the process uses before it starts.

    Raises `ConfigError` if that is too little.
    """
    if not limits:
        return without_limit(config)
    shares = list(parts(config))
    limit = min(limits, key=lambda limit: _left(limit, used))
    excess = _Excess(config, shares, _left(limit, used))
    if problems := list(_problems(excess, limit)):
        raise ConfigError(problems)
    sizes = excess.largest()
    plan = _plan(config, sizes)
    spare = -excess(sizes) if sizes == _between(shares, 1.0) else 0
    return replace(
        plan,
        max_arriving=_max_arriving(plan.config, sizes[names.REQUEST] + spare),
        ceilings=[Ceiling(one.kind, round(_usable(one)) - reading_bytes(sizes)) for one in limits],
        limit=limit,
        lowered={
            part.name: show(sizes[part.name]) for part in shares if sizes[part.name] < part.most
        },
    )


def without_limit(config: Config) -> MemoryPlan:
    """The plan with enough memory for everything."""
    return _plan(config, _between(parts(config), 1.0))


def show(size: float) -> str:
    """A size for messages."""
    return f"{math.floor(size / MiB)}MiB"


def _usable(limit: MemoryLimit) -> float:
    return limit.bytes * _USABLE_SHARE[limit.kind] - _FILE_BYTES[limit.kind]


def _left(limit: MemoryLimit, used: Callable[[Kind], int]) -> float:
    """What all parts may share."""
    stacks = 0 if limit.kind == "resident" else MAX_THREADS * STACK_BYTES
    return _usable(limit) - used(limit.kind) - _START_BYTES - stacks


class _Excess:
    """By how many bytes parts of some sizes exceed what is left."""

    def __init__(self, config: Config, shares: Sequence[Part], left: float) -> None:
        self.config = config
        self.shares = shares
        self._left = left

    def __call__(self, sizes: _Sizes) -> float:
        return needed_bytes(self.config, self.shares, sizes) - self._left

    def largest(self) -> _Sizes:
        """The largest sizes that fit, if the least ones do."""
        steps = range(_STEPS + 1)
        step = bisect_left(steps, True, key=lambda step: self(self._at(step)) > 0)
        return self._at(step - 1)

    def most_of(self, part: Part, others: _Sizes) -> int:
        """The largest size of one part beside the least ones of the others."""
        sizes = range(part.lowest, part.least + MiB, MiB)
        over = bisect_left(sizes, True, key=lambda size: self({**others, part.name: size}) > 0)
        return sizes[max(0, over - 1)]

    def _at(self, step: int) -> _Sizes:
        return _between(self.shares, step / _STEPS)


def _between(shares: Iterable[Part], share: float) -> _Sizes:
    return {part.name: round(part.least + share * (part.most - part.least)) for part in shares}


def _problems(excess: _Excess, limit: MemoryLimit) -> Iterable[Problem]:
    """Why even the least sizes do not fit."""
    least = _between(excess.shares, 0.0)
    if excess(least) <= 0:
        return
    is_ = f"the memory limit ({limit.source}) is {show(limit.bytes)}"
    missing = excess({part.name: part.lowest for part in excess.shares})
    if missing > 0:
        expected = math.ceil((limit.bytes + missing / _USABLE_SHARE[limit.kind]) / MiB)
        yield Problem("", None, (), f"{is_}, expected at least {expected}MiB")
        return
    for part in excess.shares:
        most = excess.most_of(part, least) / part.factor
        for key, size in part.configured.items():
            if size > most:
                text = f"found {show(size)}, expected at most {show(most)}: {is_}"
                yield excess.config.problem(tuple(key.split(".")), text)


def _plan(config: Config, sizes: _Sizes) -> MemoryPlan:
    return MemoryPlan(
        _with_sizes(config, sizes),
        max_conversation_bytes=sizes[names.CONVERSATIONS],
        max_queue_bytes=sizes[names.QUEUE],
        max_cached_bytes=sizes.get(names.CACHE, 0),
        max_judge_queue_bytes=sizes.get(names.JUDGE_QUEUE, 0),
        max_judge_cache_bytes=sizes.get(names.JUDGE_CACHE, 0),
        max_json_tokens=min(_MAX_JSON_TOKENS, sizes[names.REQUEST] // JSON_TOKEN_BYTES),
    )


def _with_sizes(config: Config, sizes: _Sizes) -> Config:
    """The configuration with the keys that were lowered."""
    bounds = {
        key.rpartition(".")[2]: sizes[key] for key in (names.OPEN, names.RETAINED, names.TRACE)
    }
    protocols = config.receivers.otlp.protocols
    most = sizes[names.REQUEST] // PROTOBUF_COST
    lower = {
        name: section.model_copy(update={"max_request_bytes": min(section.max_request_bytes, most)})
        for name, section in (("grpc", protocols.grpc), ("http", protocols.http))
        if section is not None
    }
    otlp = config.receivers.otlp.model_copy(
        update={"protocols": protocols.model_copy(update=lower)}
    )
    return config.with_changes(
        {
            "assembly": config.assembly.model_copy(update=bounds),
            "receivers": config.receivers.model_copy(update={"otlp": otlp}),
        }
    )


def _max_arriving(config: Config, left: float) -> int:
    """How many gRPC messages may arrive at the same time in `left` bytes."""
    grpc = config.receivers.otlp.protocols.grpc
    if grpc is None:
        return _MAX_ARRIVING
    fitting = math.floor(left / (ARRIVING_COST * grpc.max_request_bytes))
    return max(1, min(_MAX_ARRIVING, fitting))
