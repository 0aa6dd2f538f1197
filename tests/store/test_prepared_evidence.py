"""Evidence that a scorer builds ends up in the store like evidence that the store builds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evidence.evidence import evidence_of
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.pipeline_events import Judged, PublishedEvent, Withdrawn
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.store import Progress
from pathgauge.collector.store.evidence.policy import PASSED_S, EvidencePolicy, Kept
from pathgauge.collector.store.evidence.prepared import PreparedEvidence
from pathgauge.collector.store.evidence.table import find
from pathgauge.collector.store.publications import decode, encode
from pathgauge.collector.store.queries.reading import reading
from pathgauge.scorers.matching.matchers import Near
from pathgauge.scorers.responses.response_length import ResponseLength
from pathgauge.scorers.types import ExpectedCall
from support.evaluated import EXPECTED, WALL, evaluation, opened

Commits = Sequence[tuple[float, Sequence[PublishedEvent]]]
"""Unix times, each with the events that are committed then."""


def judged(one: Evaluation, max_words: int) -> Judged:
    """As if a judge had decided whether the answer of four words is short enough."""
    criterion = Criterion("length", ResponseLength(max_words=max_words), 1.0, judge="model@1")
    results = Evaluator((criterion,)).evaluate(one.invocation, one.match).results
    return Judged(with_failure(replace(one, results=results, failure=None)), first=True)


def built_by_the_store(folder: Path, policy: EvidencePolicy, commits: Commits) -> list[Any]:
    with opened(folder, policy) as store:
        for wall, events in commits:
            assert store.commit(Progress(0, 0.0, wall, events))
        return rows(folder)


def built_by_a_scorer(folder: Path, policy: EvidencePolicy, commits: Commits) -> list[Any]:
    """Without content in the events, by another process whose store is `folder`."""
    prepared = PreparedEvidence(policy)
    with opened(folder, policy) as store:
        for wall, events in commits:
            sent = encode(Publication(wall, events, evidence=prepared.of(events, wall)))
            received = decode(sent, Evaluator(()), ReferenceSet())
            assert store.commit(
                Progress(0, 0.0, received.wall, received.events, evidence=received.evidence)
            )
        return rows(folder)


def rows(folder: Path) -> list[Any]:
    with reading(folder) as connection:
        return connection.execute("SELECT * FROM evidence ORDER BY id").fetchall()


COMMITS: Commits = [
    (
        WALL,
        [
            evaluation("failed"),
            evaluation("stopped", "stopped", tenant="acme"),
            evaluation("withdrawn"),
            evaluation("passed", "passed"),
            evaluation("alone", "passed", matched=False),
            evaluation("revised"),
        ],
    ),
    (
        WALL + 1,
        [
            Withdrawn(evaluation("withdrawn").key),
            judged(evaluation("failed"), 3),
            judged(evaluation("passed", "passed"), 4),
            judged(evaluation("stopped", "stopped", tenant="acme"), 9),
            evaluation("revised", "passed", revision=1),
            *(evaluation(str(number), "passed") for number in range(5)),
        ],
    ),
    (
        WALL + 2,
        [
            evaluation("passed", "passed", revision=1),
            evaluation("0", "passed", revision=1),
            evaluation("new", "passed"),
            judged(evaluation("new", "passed"), 3),
            judged(evaluation("alone", "passed", matched=False), 3),
        ],
    ),
    (WALL + 2 + PASSED_S, [evaluation("late", "passed"), evaluation("too soon", "passed")]),
]


@pytest.mark.parametrize("keep", ["failed", "all", "none"])
@pytest.mark.parametrize("passed", [0, 1, 3, 20])
def test_the_rows_are_the_same(tmp_path: Path, keep: Kept, passed: int) -> None:
    policy = EvidencePolicy(keep, passed)
    stored = built_by_the_store(tmp_path / "whole", policy, COMMITS)
    assert built_by_a_scorer(tmp_path / "gauge", policy, COMMITS) == stored
    assert bool(stored) == (keep != "none")


def test_an_evaluation_without_prepared_evidence_has_none(tmp_path: Path) -> None:
    one = evaluation("a")
    with opened(tmp_path) as store:
        assert store.commit(Progress(0, 0.0, WALL, [one], evidence={}))
        assert rows(tmp_path) == []
        assert store.commit(Progress(0, 0.0, WALL, [one]))
        assert len(rows(tmp_path)) == 1


def test_of_passed_runs_the_first_ones_are_prepared_and_then_one_in_a_while() -> None:
    prepared = PreparedEvidence(EvidencePolicy(passed_per_scenario=2))
    first = [evaluation(str(number), "passed") for number in range(4)]
    others = [
        evaluation("tenant", "passed", tenant="acme"),
        evaluation("scenario", "passed", scenario="other"),
    ]
    assert list(prepared.of([*first, *others], WALL)) == [0, 1, 4, 5]
    assert list(prepared.of([evaluation("later", "passed")], WALL + PASSED_S - 1)) == []
    later = [evaluation("later", "passed"), evaluation("again", "passed")]
    assert list(prepared.of(later, WALL + PASSED_S)) == [0]
    revisions = [evaluation(name, "passed", revision=1) for name in ("0", "3", "later")]
    assert list(prepared.of(revisions, WALL + PASSED_S)) == [0, 2]


def test_what_is_remembered_of_passed_runs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathgauge.collector.store.evidence.prepared.MAX_REMEMBERED", 2)
    prepared = PreparedEvidence(EvidencePolicy(passed_per_scenario=1))

    def built(scenario: str, name: str) -> bool:
        return bool(prepared.of([evaluation(name, "passed", scenario=scenario)], WALL))

    assert [built("a", "1"), built("b", "2"), built("a", "3"), built("c", "4")] == [1, 1, 0, 1]
    assert [built("c", "5"), built("a", "6")] == [0, 1]


def test_a_judged_run_without_a_result_has_no_evidence(tmp_path: Path) -> None:
    late: Commits = [(WALL, [judged(evaluation("a", "passed"), 3)])]
    assert built_by_a_scorer(tmp_path, EvidencePolicy(), late) == []


def test_evidence_that_cannot_be_built_keeps_no_other_from_being_built() -> None:
    good, bad = evaluation("good"), evaluation("bad")
    matcher_beside_a_keyword = {"$any": True, "other": Near(1.0)}
    turn = replace(
        EXPECTED, tool_calls=(ExpectedCall("pay", {"amount": matcher_beside_a_keyword}),)
    )
    bad = replace(bad, match=replace(bad.match, turn=turn))
    with capture_logs() as logs:
        found = PreparedEvidence(EvidencePolicy()).of([bad, good], WALL)
    assert list(found) == [1]
    assert [line["event"] for line in logs] == ["evidence cannot be stored"]


def test_damaged_prepared_evidence_of_a_judge_leaves_the_rest(tmp_path: Path) -> None:
    one = evaluation("a")
    with opened(tmp_path) as store:
        assert store.commit(Progress(0, 0.0, WALL, [one]))
        with capture_logs() as logs:
            assert store.commit(Progress(0, 0.0, WALL, [judged(one, 3)], evidence={0: b"?"}))
        assert [line["event"] for line in logs] == ["evidence cannot be stored"]
        with reading(tmp_path) as connection:
            assert find(connection, one.key) == evidence_of(one)
