"""Gauges that tell what the telemetry of agents holds, and how it would hold more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pathgauge.collector.core.agent_records import AgentRecords, VersionKey
from pathgauge.collector.core.invocations.reading import RECORDS, Reading
from pathgauge.collector.sinks.prometheus.label_limits import LabelLimits
from support.dialects import INSTALLED
from support.durable_harness import DAY_S, DurableHarness
from support.sink_harness import SinkHarness

RECORDED, INFO = "pathgauge_agent_records", "pathgauge_agent_info"


def shown(harness: SinkHarness) -> dict[tuple[str, ...], set[str]]:
    """What each agent version has shown."""
    found: dict[tuple[str, ...], set[str]] = {}
    for (*version, what), value in harness.series(RECORDED).items():
        found.setdefault(tuple(version), set())
        if value == 1:
            found[tuple(version)].add(what)
    return found


def of(records: dict[VersionKey, Any], **options: Any) -> SinkHarness:
    return SinkHarness(records=lambda: records, **options)


def test_every_live_version_says_of_every_record_whether_it_was_seen() -> None:
    harness = of({VersionKey("", "planner", "1.0"): {"tools", "usage"}})
    harness.publish(agent_version="1.0")
    harness.publish(agent_version="2.0")
    harness.publish()
    assert shown(harness) == {
        ("planner", "1.0"): {"tools", "usage"},
        ("planner", "2.0"): set(),
        ("planner", ""): set(),
    }
    assert len(harness.series(RECORDED)) == 3 * len(RECORDS)


def test_versions_without_series_of_their_own_are_not_shown() -> None:
    """Nor those of agents without a name, which are not known."""
    known = {VersionKey("", name, "1.0"): {"tools"} for name in ("planner", "other", "gone")}
    harness = of(known, limits=LabelLimits(max_agents=1))
    harness.publish(agent_version="1.0")
    harness.publish(agent="other", agent_version="1.0")
    harness.publish(agent=None, agent_version="1.0")
    assert shown(harness) == {("planner", "1.0"): {"tools"}}


def test_long_names_are_cut_like_those_of_other_series() -> None:
    name, records = "é" * 200, AgentRecords()
    harness = SinkHarness(records=records.shown)
    evaluation = harness.publish(agent=name, agent_version=name)
    records.learn([Reading(evaluation.invocation, frozenset({"tools"}))], 0.0)
    records.commit()
    label = f"{'é' * 27}~d854fa06"
    assert shown(harness) == {(label, label): {"tools"}}


@pytest.mark.parametrize("tenants", [True, False])
def test_tenants_are_told_apart_if_they_are_shown(tenants: bool) -> None:
    known = {VersionKey("acme", "planner", "1"): {"tools"}, VersionKey("b", "planner", "1"): set()}
    harness = of(known, tenants=tenants)
    for tenant in ("acme", "b"):
        harness.publish(agent_version="1", tenant=tenant)
    if tenants:
        assert shown(harness) == {("acme", "planner", "1"): {"tools"}, ("b", "planner", "1"): set()}
    else:
        assert shown(harness) == {("planner", "1"): {"tools"}}


def dialects(harness: SinkHarness) -> set[tuple[str, ...]]:
    return set(harness.series(INFO))


def invoked(harness: SinkHarness, dialect: str, **fields: Any) -> None:
    invocation = replace(harness.invocation(**fields), dialect=dialect)
    harness.publish_evaluation(
        harness.evaluator.evaluate(invocation, harness.references.match(invocation))
    )


def test_an_agent_has_the_dialect_of_its_latest_invocation_and_its_setting() -> None:
    harness = DurableHarness(content_settings={"adk": "X=1"})
    invoked(harness, "genai")
    invoked(harness, "adk")
    invoked(harness, "genai", agent="other")
    expected = {("planner", "X=1", "adk"), ("other", "", "genai")}
    assert dialects(harness) == expected
    harness.commit()
    after = harness.restarted()
    assert dialects(after) == expected
    after.now += 2 * DAY_S
    invoked(after, "adk", agent="new")
    assert dialects(after) == {("new", "X=1", "adk")}


def test_every_installed_dialect_with_a_switch_names_its_setting() -> None:
    settings = INSTALLED.content_settings
    without = {name for name, setting in settings.items() if not setting}
    always = {
        "agent365",
        "agentscope",
        "agentscope-runtime",
        "any-agent",
        "fast-agent",
        "genkit",
        "langwatch",
        "livekit",
        "mlflow",
        "pipecat",
        "strands",
        "trulens",
        "voltagent",
    }
    assert without == {"codex", *always}
    assert settings["openllmetry"] == "TRACELOOP_TRACE_CONTENT=true"
    assert settings["openinference"].startswith("OPENINFERENCE_HIDE_INPUTS=false")
