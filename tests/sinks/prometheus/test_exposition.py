"""`/metrics` writes only what changed since the last scrape, and shows what prometheus_client would
show of the same registry.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given, strategies as st
from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families as parse_text

from pathgauge.collector.core.evaluations.aggregation import Aggregation
from pathgauge.collector.core.evaluations.changed_series import MAX_CHANGED, ChangedSeries
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.evaluations.windows import Windows
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.service.cluster.metrics import ProcessSeries
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.exposition import text
from pathgauge.collector.sinks.prometheus.exposition.blocks import (
    Block,
    all_compressed,
    compressed,
    gzipped,
    inflated,
)
from pathgauge.collector.sinks.prometheus.exposition.label_text import LabelText
from pathgauge.collector.sinks.prometheus.exposition.registry import END, Registry
from pathgauge.collector.sinks.prometheus.exposition.text import Form
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from pathgauge.scorers.types import Reference
from support.durable_harness import DurableHarness
from support.sink_harness import (
    ANSWER,
    Answer,
    Rating,
    Seconds,
    SinkHarness,
    Waste,
    generate_openmetrics,
    parse_openmetrics,
    with_turns,
)

CRITERIA = (
    ANSWER,
    Criterion("rating", Rating(), 2.0, objective=0.9),
    Criterion("waste", Waste()),
    Criterion("seconds", Seconds(), 3.0),
    Criterion("suite", Answer(), 0.5, aggregation=Aggregation("suite")),
)
SCENARIOS = tuple(f"scenario {number}" for number in range(10))
REFERENCES = with_turns(*(Reference(name, (), expected_interval=60.0) for name in SCENARIOS))
VOLATILE = ("process_", "python_")
"""Different at each scrape."""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], object]


def written(registry: Registry, form: Form) -> str:
    """What a scrape gets."""
    whole = b"".join(map(inflated, all_compressed(registry.parts(form))))
    return (whole + (END if form == "openmetrics" else b"")).decode()


def samples(families: Iterable[Metric]) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): (
            family.type,
            family.documentation,
            sample.value,
            sample.exemplar,
        )
        for family in families
        for sample in family.samples
        if not sample.name.startswith(VOLATILE)
    }


def assert_complete(registry: Registry) -> None:
    """A scrape in either format shows what prometheus_client shows."""
    plain = written(registry, "text")
    assert samples(parse_text(plain)) == samples(parse_text(generate_latest(registry).decode()))
    openmetrics = written(registry, "openmetrics")
    assert samples(parse_openmetrics(openmetrics)) == samples(
        parse_openmetrics(generate_openmetrics(registry).decode())
    )
    for lines in (plain.splitlines(), openmetrics.splitlines()):
        kinds = [line for line in lines if line.startswith("# TYPE")]
        assert len(kinds) == len(set(kinds))  # each family stands in one place


def steps(harness: SinkHarness) -> Iterator[Callable[[], object]]:
    """What can happen to a sink, each step between two scrapes."""

    def publish(*scenarios: str, **fields: object) -> None:
        for number, scenario in enumerate(scenarios):
            harness.publish(number % 5 / 4, scenario_id=scenario, **fields)

    def revision_before_the_first() -> None:
        invocation = harness.invocation(agent="another", scenario_id=SCENARIOS[0])
        match = harness.references.match(invocation)
        harness.publish_evaluation(harness.evaluator.evaluate(invocation, match, revision=1))

    first = harness.publish(0.25, scenario_id=SCENARIOS[0])
    yield lambda: publish(*SCENARIOS)
    yield lambda: publish(SCENARIOS[3], agent_version="v2")
    yield revision_before_the_first
    yield lambda: publish(*SCENARIOS[5:9], agent='quoted "name" \\ and\nline')
    yield lambda: harness.revise(first, 0.75)
    yield lambda: harness.publish("content missing", scenario_id=SCENARIOS[1])
    yield lambda: harness.publish(7.0, scenario_id=SCENARIOS[2])
    yield lambda: harness.sink.withdraw(first.key)
    yield lambda: setattr(harness, "now", harness.now + 400)
    yield lambda: publish(SCENARIOS[0])
    yield lambda: setattr(harness, "now", harness.now + 201)  # windows become stale
    yield lambda: setattr(harness, "now", harness.now + 1500)  # and empty
    yield lambda: publish(SCENARIOS[1], SCENARIOS[2])
    fewer = Evaluator(CRITERIA[:2])
    yield lambda: harness.sink.configure(
        fewer, with_turns(*(Reference(name, ()) for name in SCENARIOS[:8]))
    )
    yield lambda: setattr(harness, "evaluator", fewer)
    yield lambda: setattr(harness, "now", harness.now + 4000)  # names are idle
    yield lambda: publish(SCENARIOS[1], SCENARIOS[2])
    yield lambda: setattr(harness, "now", harness.now - 9000)  # a step of the clock
    yield lambda: publish(SCENARIOS[1], SCENARIOS[4])


@pytest.mark.slow
@pytest.mark.parametrize("tenants", [False, True])
def test_a_scrape_after_each_change_shows_what_prometheus_client_shows(tenants: bool) -> None:
    harness = SinkHarness(
        *CRITERIA,
        references=REFERENCES,
        windows=Windows(size=3, max_age_s=1200, stale_after_s=600),
        limits=LabelLimits(idle_s=3600),
        tenants=tenants,
    )
    assert_complete(harness.sink.registry)
    for step in steps(harness):
        step()
        assert_complete(harness.sink.registry)


def test_a_restart_shows_the_same() -> None:
    harness = DurableHarness(*CRITERIA, references=REFERENCES)
    for scenario in SCENARIOS[:5]:
        harness.publish(0.5, scenario_id=scenario)
    assert_complete(harness.sink.registry)  # counted, not committed
    harness.commit()
    assert_complete(harness.sink.registry)
    before = samples(parse_text(written(harness.sink.registry, "text")))
    after = harness.restarted(references=REFERENCES)
    assert_complete(after.sink.registry)
    restored = samples(parse_text(written(after.sink.registry, "text")))
    assert {key: value for key, value in restored.items() if "config" not in key[0]} == {
        key: value for key, value in before.items() if "config" not in key[0]
    }


def test_only_what_changed_is_written_again() -> None:
    many = [f"scenario {number}" for number in range(40)]
    references = with_turns(*(Reference(name, ()) for name in many))
    harness = SinkHarness(*CRITERIA, references=references)
    for scenario in many:
        harness.publish(0.5, scenario_id=scenario)

    def kept() -> set[int]:
        return {id(part) for part in parts if isinstance(part, Block)}

    parts = [*harness.sink.registry.parts("text")]
    first, all_parts = kept(), parts
    parts = [*harness.sink.registry.parts("text")]
    assert kept() == first
    harness.publish(0.5, scenario_id=many[7])
    parts = [*harness.sink.registry.parts("text")]
    assert 0 < len(kept() - first) < len(first) / 3
    assert all_parts  # keeps the ids unique


def test_a_scrape_shows_one_moment_while_counts_are_committed() -> None:
    metrics = DurableMetrics()
    calls = metrics.counter("calls", "Calls.", ("agent",))
    done = metrics.counter("done", "Calls that ended.", ("agent",))

    def count() -> None:
        for agent in ("a", "b", "c"):
            calls.of(agent).add()
            done.of(agent).add()
        metrics.pending()
        metrics.commit()

    count()
    parts = metrics.parts(metrics.published(), "text")
    texts = [next(parts)]
    count()
    texts += parts
    shown = b"".join(part if isinstance(part, bytes) else inflated(part) for part in texts)
    values = {line.rpartition(b" ")[2] for line in shown.splitlines() if not line.startswith(b"#")}
    assert values == {b"1.0"}
    again = samples(
        parse_text(
            b"".join(
                map(inflated, all_compressed(metrics.parts(metrics.published(), "text")))
            ).decode()
        )
    )
    assert {value[2] for value in again.values()} == {2.0}  # type: ignore[index]


def test_a_process_of_a_cluster_shows_the_same_in_parts() -> None:
    registry = Registry()
    registry.register(ProcessSeries(InternalTelemetry(), lambda: 3, None))
    assert_complete(registry)
    assert "pathgauge_traces_open 3.0" in written(registry, "text")


def test_more_changes_than_are_remembered_count_as_changes_of_all() -> None:
    changed: ChangedSeries[int] = ChangedSeries()
    changed.add(1)
    assert changed.take() is None  # nobody has asked before
    changed.add(1)
    changed.add(2)
    assert changed.take() == {1, 2}
    for number in range(MAX_CHANGED + 1):
        changed.add(number)
    assert changed.take() is None
    assert changed.take() == set()


@given(st.lists(st.binary(max_size=300)), st.integers(0, 3))
def test_parts_become_one_gzip_stream(texts: list[bytes], seed: int) -> None:
    chosen = random.Random(seed)
    parts = [text if chosen.random() < 0.5 else compressed(text) for text in texts]
    blocks = [*all_compressed(parts)]
    assert gzip.decompress(gzipped(blocks)) == b"".join(texts)
    assert b"".join(map(inflated, blocks)) == b"".join(texts)


@given(
    st.lists(st.lists(st.text('a%s\\"\n{}', max_size=4), min_size=2, max_size=3).map(tuple)),
    st.sampled_from([("tenant", "agent", "judge"), ("a", "b", "c")]),
)
def test_labels_of_many_series_are_those_of_each_alone(
    series: list[tuple[str, ...]], names: tuple[str, ...]
) -> None:
    label_text = LabelText(names)
    for _ in range(2):
        assert [*label_text.of(series)] == [text.labels(names, values) for values in series]
    assert [*LabelText(()).of([()])] == [""]


@given(st.lists(st.floats() | st.integers(0, 2000)))
def test_numbers_together_are_those_of_each_alone(values: list[float]) -> None:
    assert text.numbers(values) == [*map(text.number, values)]
    counts = [abs(value) for value in values]
    assert [*map(text.count, counts)] == [*map(text.number, counts)]


def test_labels_with_any_character_stand_in_histograms() -> None:
    metrics = DurableMetrics()
    seconds = metrics.histogram("seconds", "Seconds.", ("agent",), bounds=(0.5,))
    seconds.of('100 %s "quoted"').observe(0.2)
    metrics.pending()
    metrics.commit()
    shown = b"".join(map(inflated, all_compressed(metrics.parts(metrics.published(), "text"))))
    assert samples(parse_text(shown.decode())) == samples(metrics.collect())
