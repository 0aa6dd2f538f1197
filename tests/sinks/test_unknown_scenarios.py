"""Scenario ids in the traffic that have no reference: logged once each, counted, bounded."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.sinks import unknown_scenarios
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario, UnknownScenarios
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn

EVENT = "no reference has this scenario id"


def references(*ids: str) -> ReferenceSet:
    return ReferenceSet(Reference(one, (ReferenceTurn(),)) for one in ids)


def evaluation(scenario: str | None, known: ReferenceSet, **fields: Any) -> Evaluation:
    invocation = Invocation("t", "s", "genai", scenario_id=scenario, **fields)
    return Evaluation(invocation, known.match(invocation), (), "root_ended")


def publish(sink: UnknownScenarios, *ids: str | None, **fields: Any) -> list[dict[str, Any]]:
    """The log lines of invocations with these ids."""
    with capture_logs() as logs:
        for one in ids:
            sink.publish(evaluation(one, references("refund_order", "book_trip"), **fields), 0.0)
    return [dict(line) for line in logs]


def line(scenario: str, *closest: str, **more: str) -> dict[str, Any]:
    known = {"closest": closest} if closest else {}
    return {"event": EVENT, "log_level": "warning", "scenario": scenario, **known, **more}


@pytest.fixture
def sink() -> UnknownScenarios:
    return UnknownScenarios(references("refund_order", "book_trip"))


def test_an_unknown_id_is_logged_once_with_the_closest_known_one(sink: UnknownScenarios) -> None:
    logs = publish(sink, "refund_oder", "refund_order", None, "refund_oder", "weather")
    assert logs == [line("refund_oder", "refund_order"), line("weather")]
    assert sink.snapshot() == (
        [
            UnknownScenario("", "refund_oder", ("refund_order",), 2),
            UnknownScenario("", "weather", (), 1),
        ],
        0,
    )


def test_each_tenant_has_its_own_ids(sink: UnknownScenarios) -> None:
    assert publish(sink, "weather", tenant="a") == [line("weather", tenant="a")]
    assert publish(sink, "weather", tenant="b") == [line("weather", tenant="b")]
    assert [one.tenant for one in sink.snapshot()[0]] == ["a", "b"]


def test_a_revision_is_not_counted_again(sink: UnknownScenarios) -> None:
    known = references("refund_order")
    first = evaluation("weather", known)
    for revision in range(3):
        sink.publish(Evaluation(first.invocation, first.match, (), "root_ended", revision), 0.0)
    assert [one.invocations for one in sink.snapshot()[0]] == [1]


def test_without_references_nothing_is_logged() -> None:
    sink = UnknownScenarios(references())
    assert publish(sink, "weather") == []
    assert sink.snapshot()[0] == [UnknownScenario("", "weather", (), 1)]


def test_other_references_make_ids_known_and_counts_begin_again(sink: UnknownScenarios) -> None:
    publish(sink, "weather", "book_tripp", "book_tripp")
    sink.configure(references("weather", "book_trip"))
    kept = UnknownScenario("", "book_tripp", ("book_trip",), 0)
    assert sink.snapshot() == ([kept], 0)
    assert publish(sink, "book_tripp") == []
    sink.configure(references("weather"))
    assert sink.snapshot() == ([UnknownScenario("", "book_tripp", (), 0)], 0)


def test_an_id_that_was_not_sent_between_two_reloads_makes_room_for_others(
    sink: UnknownScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown_scenarios, "MAX_SCENARIOS", 2)
    publish(sink, "a", "b", "c")
    sink.configure(references("book_trip"))
    publish(sink, "a")
    sink.configure(references("book_trip"))
    assert publish(sink, "c") == [line("c")]
    assert sink.snapshot() == (
        [UnknownScenario("", "c", (), 1), UnknownScenario("", "a", (), 0)],
        0,
    )


def test_ids_and_their_length_are_bounded(
    sink: UnknownScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown_scenarios, "MAX_SCENARIOS", 3)
    logs = publish(sink, "a", "b", "c" * 1000, "d", "e", "d", "a")
    assert [entry["scenario"] for entry in logs] == ["a", "b", "c" * 200]
    found, unlisted = sink.snapshot()
    assert [(one.scenario, one.invocations) for one in found] == [
        ("a", 2),
        ("b", 1),
        ("c" * 200, 1),
    ]
    assert unlisted == 3
