"""Senders that invent names: series, exposition and memory stay bounded, and every label beyond the
limits is counted.

`FAULTS=1` sends a million names, and as many evaluations, instead of some thousands.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pathgauge.collector.core.evaluations.conversations import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.scorers.authoring.builders import expected_calls, tool_calls
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score, ToolCall

LONG = bool(os.environ.get("FAULTS"))
EVALUATIONS = 250_000 if LONG else 6_000
"""Of each attack."""
NOW = 1_800_000_000.0
MAX_GROWTH = 128 << 20
"""Bytes by which the process may grow after a quarter of the names arrived. 2,000 windows then fill
with up to 100 scores each.
"""
SCENARIOS = 1_500
"""Scenarios of the references, more than the limit."""
generate_openmetrics, _ = choose_encoder("application/openmetrics-text; version=1.0.0")
TRICKY = '\n"}{\\,=\ud800é' + "x" * 200


@dataclass(frozen=True, slots=True)
class Constant:
    """A scorer that takes no time."""

    name: ClassVar[str] = "constant"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score(1.0)


class Names(NamedTuple):
    """The names that a sender gives."""

    agent: str
    version: str | None
    scenario: str


def any_name(number: int) -> Names:
    name = f"{number}{TRICKY}"
    return Names(name, name, name)


def any_version(number: int) -> Names:
    return Names("agent", f"{number}{TRICKY}", "scenario 0")


def any_pair(number: int) -> Names:
    return Names(f"{number % 100}{'€' * 200}", f"{number // 100 % 10}{'€' * 200}", "scenario 0")


def any_scenario(number: int) -> Names:
    return Names("agent", None, f"scenario {number % SCENARIOS}")


CRITERIA = (Criterion("one", Constant(), 0.5), Criterion("two", Constant()))
LIMITS = LabelLimits()
FIT = LIMITS.max_series // len(CRITERIA)
"""Scenarios within the limit."""
BEYOND = sum(number % SCENARIOS >= FIT for number in range(EVALUATIONS))


class Attack(NamedTuple):
    """Names, how often they exceed each limit, and the maximum size of the exposition."""

    names: Callable[[int], Names]
    overflow: Mapping[str, int]
    max_bytes: int = 5_500_000
    max_s: float = 2.0
    """Half of this is the aim; machines differ."""


ATTACKS = {
    "any name": Attack(
        any_name, {"agents": EVALUATIONS - LIMITS.max_agents, "versions": 0, "series": 0}
    ),
    "any version": Attack(
        any_version, {"agents": 0, "versions": EVALUATIONS - LIMITS.max_versions, "series": 0}
    ),
    # These exceed the limit of label sets, and that of versions of all agents.
    "any known scenario": Attack(any_scenario, {"agents": 0, "versions": 0, "series": BEYOND}),
    "any pair of long names": Attack(
        any_pair, {"agents": 0, "versions": EVALUATIONS * 85 // 100, "series": 0}
    ),
}


def invocations(names: Callable[[int], Names]) -> Iterator[Invocation]:
    for number in range(EVALUATIONS):
        agent, version, scenario = names(number)
        name = f"{number}{TRICKY}"
        yield Invocation(
            f"{number:032x}",
            f"{number:016x}",
            name,
            agent=agent,
            agent_version=version,
            scenario_id=scenario,
            model=name,
            error_type=name,
            tool_calls=(ToolCall(name, error=name),),
        )


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.slow
def test_invented_names_leave_the_exposition_bounded(attack: Attack) -> None:
    references = ReferenceSet(
        [Reference(f"scenario {number}", (ReferenceTurn(),)) for number in range(SCENARIOS)]
    )
    evaluator, telemetry = Evaluator(CRITERIA), InternalTelemetry()
    sink = PrometheusSink(evaluator, references, telemetry, clock=lambda: NOW)
    before = 0
    for number, invocation in enumerate(invocations(attack.names)):
        sink.publish(evaluator.evaluate(invocation, references.match(invocation)), NOW)
        before = memory() if number == EVALUATIONS // 4 else before
    assert memory() - before < MAX_GROWTH
    assert {limit: count for (limit,), count in telemetry.series_overflow.items()} == {
        "total": 0,
        **attack.overflow,
        "drift": 0,
        "traffic": 0,
    }
    samples = [sample for family in sink.registry.collect() for sample in family.samples]
    label_sets = {
        tuple(sample.labels.values())
        for sample in samples
        if sample.name == "pathgauge_score_count"
    }
    assert len(label_sets) <= LIMITS.max_series + len(CRITERIA)
    assert sum(
        sample.value for sample in samples if sample.name == "pathgauge_evaluations_total"
    ) == EVALUATIONS * len(CRITERIA)
    for encode in (generate_latest, generate_openmetrics):
        text, seconds = scraped(sink, encode, attack.max_s)
        assert (len(text) <= attack.max_bytes, seconds <= attack.max_s) == (True, True), (
            len(text),
            seconds,
        )


TENANTS = 1_000
OF_A_TENANT = 6
"""Scenarios, with five criteria each."""
EVERYTHING = tuple(
    Criterion(f"f1 {number}", ToolTrajectoryF1(), 0.5, objective=0.9) for number in range(5)
)
MAX_LINES = 60 * LIMITS.max_series_total
"""Each label set has a histogram and counters of invocations and of conversations, and gauges of
windows and thresholds.
"""
MAX_SCRAPE_S = 8.0
"""CPU time of one exposition: Prometheus waits 10 s by default."""
WEEK_S = 7 * 86_400.0


def evaluate_everything(sink: PrometheusSink, tenants: list[str], version: str, now: float) -> None:
    """A turn of each scenario of each tenant, and its conversation."""
    calls = tool_calls("lookup")
    turns = (ReferenceTurn(tool_calls=expected_calls("lookup")),) * 2
    evaluator = Evaluator(EVERYTHING)
    for tenant in tenants:
        for number in range(OF_A_TENANT):
            reference = Reference(f"scenario {number}", turns)
            invocation = Invocation(
                f"{number:032x}",
                version,
                tenant=tenant,
                dialect="test",
                agent="agent",
                agent_version=version,
                tool_calls=calls,
                start_ns=1,
                end_ns=2,
                input_tokens=1,
                output_tokens=1,
            )
            sink.publish(evaluator.evaluate(invocation, Match(reference, turn=turns[0])), now)
            scores = tuple(ConversationScore(criterion, 0.5) for criterion in EVERYTHING)
            sink.publish_conversation(
                ConversationResult(tenant, "c", reference, "agent", version, scores, 2, 0, 0), now
            )


@pytest.mark.slow
def test_a_thousand_tenants_leave_the_exposition_small_enough_for_a_scrape() -> None:
    tenants = [f"tenant-{number}" for number in range(TENANTS)]
    references = ReferenceSet(
        Reference(f"scenario {number}", (ReferenceTurn(), ReferenceTurn()))
        for number in range(OF_A_TENANT)
    )
    now = NOW
    sink = PrometheusSink(
        Evaluator(EVERYTHING),
        references,
        InternalTelemetry(),
        limits=LabelLimits(tenants=frozenset(tenants)),
        tenants=True,
        min_samples=1,
        clock=lambda: now,
    )
    before = memory()
    for version in ("v1", "v2"):
        now += WEEK_S
        evaluate_everything(sink, tenants, version, now)
    for encode in (generate_latest, generate_openmetrics):
        text, seconds = scraped(sink, encode, MAX_SCRAPE_S)
        assert (text.count(b"\n") <= MAX_LINES, seconds <= MAX_SCRAPE_S) == (True, True), (
            text.count(b"\n"),
            seconds,
        )
    assert memory() - before < 3 * MAX_GROWTH
    counted = text.splitlines()
    assert (
        sum(
            float(line.split()[1])
            for line in map(bytes.decode, counted)
            if line.startswith("pathgauge_invocations_total")
        )
        == TENANTS * OF_A_TENANT  # a week later, idle series are gone
    )


def test_names_with_special_characters_leave_the_exposition_valid() -> None:
    evaluator = Evaluator(CRITERIA)
    sink = PrometheusSink(evaluator, ReferenceSet(), InternalTelemetry(), clock=lambda: NOW)
    for invocation in islice(invocations(any_name), 50):
        sink.publish(evaluator.evaluate(invocation, ReferenceSet().match(invocation)), NOW)
    samples = [
        sample
        for family in parse_text(generate_latest(sink.registry).decode())
        for sample in family.samples
    ]
    assert sum(
        sample.value for sample in samples if sample.name == "pathgauge_evaluations_total"
    ) == 50 * len(CRITERIA)


def scraped(
    sink: PrometheusSink, encode: Callable[[CollectorRegistry], bytes], max_s: float
) -> tuple[bytes, float]:
    """An exposition and its CPU time; the best of three if the first is too slow."""
    shortest, text = math.inf, b""
    for _ in range(3):
        began = time.thread_time()
        text = encode(sink.registry)
        shortest = min(shortest, time.thread_time() - began)
        if shortest <= max_s:
            break
    return text, shortest


def memory() -> int:
    """Resident memory of the process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return (
        next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        * 1024
    )
