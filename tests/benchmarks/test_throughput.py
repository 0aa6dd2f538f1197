"""How many spans a second the running service makes durable and scores, beside one that keeps them
in memory, a server that only receives them, and the OpenTelemetry Collector.

By default this is one short round that shows that nothing is lost. `make bench` runs three rounds,
prints the goals, and fails when a ratio is 15 % worse than at the last release. One slow moment of
the machine must not fail it: as long as something is worse, up to two rounds are added.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from benchmarks import recorded
from benchmarks.opentelemetry_collector import (
    DURABLE,
    DURABLE_SAMPLING,
    PROGRAM,
    SAMPLING,
    measure_collector,
)
from benchmarks.rounds import BARE, Key, Ratios, Rounds
from benchmarks.servers import LONG, SECONDS, Run, measure_bare, measure_service

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3")) if LONG else 1
MAX_ADDED_ROUNDS = 2
ROUND_S = SECONDS / 3 if LONG else SECONDS
"""Load of one server in one round."""

CALM = 10_000
"""Spans a second at which latency and memory are looked at."""

MIXED = Key("mixed", "pathgauge, durable")
IN_MEMORY = Key("mixed", "pathgauge, store: memory")
AGENTS = Key("agents", "pathgauge, durable")
CALM_MIXED = Key("mixed", f"pathgauge, {CALM:,} spans/s")
COMPARED = (MIXED, IN_MEMORY, AGENTS)
"""With the ratios of the last release."""

MAX_CPU = {MIXED: 8.5, AGENTS: 10.0}
MIN_SCORED = {MIXED: 0.27, AGENTS: 0.22}
MAX_CALM_P99_MS = 30.0
MAX_CALM_MIB = 160.0


def test_throughput_beside_a_bare_receiver(tmp_path: Path) -> None:
    rounds = Rounds(_servers(tmp_path))
    rounds.measure(ROUNDS)
    if not LONG:
        print("", *rounds.table(), sep="\n")
        return
    for _ in range(MAX_ADDED_ROUNDS):
        if recorded.worse(_by_round(rounds)):
            rounds.measure()
    print(
        f"\n{os.cpu_count()} cores, load generator included; requests of 100 spans, gzip;"
        f" medians of {len(rounds.runs)} rounds, {ROUND_S:.2g} s of load each",
        *rounds.table(),
        "",
        *rounds.by_round([key for key in rounds.servers if key.server != BARE]),
        "",
        *_goals(rounds),
        sep="\n",
    )
    if PROGRAM is None:
        print("no otelcol on the PATH: docs/benchmarks.md explains how to build it")
    if "BENCH_RECORD" in os.environ:
        recorded.record({key: rounds.medians(key) for key in COMPARED})
    worse = recorded.worse(_by_round(rounds))
    assert not worse, "; ".join(worse)
    if not recorded.is_recorded():
        print(f"no ratios were recorded for {os.cpu_count()} cores: BENCH_RECORD=1 make bench")


def _servers(folder: Path) -> Mapping[Key, Callable[[], Run]]:
    bare = partial(measure_bare, seconds=ROUND_S)
    service = partial(measure_service, folder, seconds=ROUND_S)
    measured: dict[Key, Callable[[], Run]] = {
        Key("mixed", BARE): partial(bare, "mixed"),
        MIXED: partial(service, "mixed"),
    }
    if not LONG:
        return measured
    measured |= {IN_MEMORY: partial(service, "mixed", "memory")}
    if PROGRAM is not None:
        measured |= {
            Key("mixed", f"Collector, {name}"): partial(
                measure_collector, folder, "mixed", configs, ROUND_S
            )
            for name, configs in (
                ("tail sampling", SAMPLING),
                ("sampling, fsync", DURABLE_SAMPLING),
                ("fsync before the ack", DURABLE),
            )
        }
    measured |= {
        CALM_MIXED: partial(service, "mixed", rate=CALM),
        Key("agents", BARE): partial(bare, "agents"),
        AGENTS: partial(service, "agents"),
    }
    if PROGRAM is not None:
        sampling = partial(measure_collector, folder, "agents", SAMPLING, ROUND_S)
        measured |= {Key("agents", "Collector, tail sampling"): sampling}
    return measured


def _by_round(rounds: Rounds) -> Mapping[Key, Sequence[Ratios]]:
    return {key: rounds.ratios(key) for key in COMPARED}


def _goals(rounds: Rounds) -> list[str]:
    lines = []
    for key in (MIXED, AGENTS):
        ratios = rounds.medians(key)
        lines += [
            _goal(f"{key.load}: CPU / bare", ratios.cpu, MAX_CPU[key]),
            _goal(f"{key.load}: scored / bare", ratios.scored, MIN_SCORED[key], at_least=True),
        ]
    p99_ms = rounds.median(CALM_MIXED, lambda run: run.load["ack_p99_ms"])
    rss_mib = rounds.median(CALM_MIXED, lambda run: run.rss_mib)
    return [
        *lines,
        _goal(f"{CALM:,} spans/s: p99 ms", p99_ms, MAX_CALM_P99_MS),
        _goal(f"{CALM:,} spans/s: MiB", rss_mib, MAX_CALM_MIB),
    ]


def _goal(name: str, value: float, bound: float, *, at_least: bool = False) -> str:
    met = value >= bound if at_least else value <= bound
    word = "at least" if at_least else "at most"
    return f"goal: {name} {value:.2f}, {word} {bound:g}: {'met' if met else 'not met'}"
