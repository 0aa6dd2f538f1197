"""Evidence is stored with the result that it explains, and no more of it than the policy allows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evidence.evidence import Evidence, evidence_of
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.pipeline_events import Judged, Withdrawn
from pathgauge.collector.store import Selection
from pathgauge.collector.store.evidence.policy import PASSED_S, EvidencePolicy, Kept
from pathgauge.collector.store.evidence.table import find
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.queries.results import of_trace
from pathgauge.collector.store.queries.stored_result import StoredResult
from pathgauge.collector.testing import trace_id
from pathgauge.scorers.matching.matchers import Near
from pathgauge.scorers.responses.response_length import ResponseLength
from pathgauge.scorers.types import ExpectedCall
from support.evaluated import EXPECTED, WALL, commit, evaluation, opened

DAY = 86_400.0


def stored(folder: Path, one: Evaluation) -> Evidence | None:
    with reading(folder) as connection:
        return find(connection, one.key)


def kept(folder: Path) -> int:
    with reading(folder) as connection:
        [number] = connection.execute("SELECT count(*) FROM evidence").fetchone()
        return int(number)


def judged(one: Evaluation, max_words: int) -> Judged:
    """As if a judge had decided whether the answer of four words is short enough."""
    criterion = Criterion("length", ResponseLength(max_words=max_words), 1.0, judge="model@1")
    results = Evaluator((criterion,)).evaluate(one.invocation, one.match).results
    return Judged(with_failure(replace(one, results=results)), first=True)


def test_a_failed_run_can_be_explained_after_a_restart(tmp_path: Path) -> None:
    failed = evaluation("a")
    with opened(tmp_path) as store:
        commit(store, [failed])
    with opened(tmp_path):
        assert stored(tmp_path, failed) == evidence_of(failed)


@pytest.mark.parametrize(
    ("keep", "names"),
    [("failed", {"failed", "passed"}), ("all", {"failed", "passed", "alone"}), ("none", set())],
)
def test_the_policy_says_which_runs_are_kept(tmp_path: Path, keep: Kept, names: set[str]) -> None:
    runs = {
        "failed": evaluation("failed"),
        "passed": evaluation("passed", "passed"),
        "alone": evaluation("alone", "passed", matched=False),
    }
    with opened(tmp_path, EvidencePolicy(keep)) as store:
        commit(store, list(runs.values()))
        assert {name for name, one in runs.items() if stored(tmp_path, one)} == names


def test_of_passed_runs_the_first_ones_are_kept_and_then_one_in_a_while(tmp_path: Path) -> None:
    runs = [evaluation(str(number), "passed") for number in range(6)]
    with opened(tmp_path, EvidencePolicy(passed_per_scenario=3)) as store:
        for number, one in enumerate(runs[:4]):
            commit(store, [one], WALL + number)
        assert [bool(stored(tmp_path, one)) for one in runs[:4]] == [True, True, True, False]
        commit(store, [runs[4]], WALL + 2 + PASSED_S - 1)
        assert not stored(tmp_path, runs[4])
        commit(store, [runs[5]], WALL + 2 + PASSED_S)
        assert [bool(stored(tmp_path, one)) for one in runs] == [0, 1, 1, 0, 0, 1]


def test_passed_runs_of_each_scenario_and_tenant_are_counted_apart(tmp_path: Path) -> None:
    runs = [
        evaluation(f"{tenant}{scenario}{number}", "passed", tenant=tenant, scenario=scenario)
        for tenant in ("a", "b")
        for scenario in ("x", "y")
        for number in range(2)
    ]
    with opened(tmp_path, EvidencePolicy(passed_per_scenario=1)) as store:
        commit(store, runs)
        assert [bool(stored(tmp_path, one)) for one in runs] == [True, False] * 4


def test_a_revision_replaces_the_evidence(tmp_path: Path) -> None:
    first, second = evaluation("a"), evaluation("a", "passed", revision=1)
    with opened(tmp_path) as store:
        commit(store, [first])
        commit(store, [second])
        assert stored(tmp_path, first) == evidence_of(second)


def test_the_evidence_of_a_withdrawn_result_is_deleted(tmp_path: Path) -> None:
    one = evaluation("a")
    with opened(tmp_path) as store:
        commit(store, [one])
        commit(store, [Withdrawn(one.key)])
        assert stored(tmp_path, one) is None


def test_judges_add_what_they_said(tmp_path: Path) -> None:
    one = evaluation("a")
    with opened(tmp_path) as store:
        commit(store, [one])
        commit(store, [judged(one, 4)])
        found = stored(tmp_path, one)
    assert found is not None
    assert [criterion.name for criterion in found.criteria] == ["trajectory", "length"]
    assert found.failure == evidence_of(one).failure


def test_a_run_that_only_a_judge_fails_is_explained(tmp_path: Path) -> None:
    one = evaluation("a", "passed")
    with opened(tmp_path, EvidencePolicy(passed_per_scenario=0)) as store:
        commit(store, [one])
        assert stored(tmp_path, one) is None
        commit(store, [judged(one, 3)])
        found = stored(tmp_path, one)
        [result] = with_results(tmp_path, one)
    assert found is not None
    assert [(criterion.name, criterion.verdict) for criterion in found.criteria] == [
        ("trajectory", "passed"),
        ("length", "failed"),
    ]
    assert found.failure is not None
    assert (result.verdict, result.category) == ("failed", found.failure.category)
    with reading(tmp_path) as connection:
        assert connection.execute("SELECT failed FROM evidence").fetchall() == [(1,)]


def with_results(folder: Path, one: Evaluation) -> list[StoredResult]:
    with reading(folder) as connection:
        return of_trace(connection, one.invocation.trace_id)


def test_a_purge_removes_the_evidence(tmp_path: Path) -> None:
    runs = [evaluation("a"), evaluation("b", scenario="other"), evaluation("c")]
    with opened(tmp_path) as store:
        commit(store, runs[:2])
        commit(store, runs[2:], WALL + DAY)
        store.purge(Selection(trace_id=trace_id("a")))
        assert [bool(stored(tmp_path, one)) for one in runs] == [False, True, True]
        store.purge(Selection(scenario="other"))
        assert [bool(stored(tmp_path, one)) for one in runs] == [False, False, True]
        store.purge(Selection(before=WALL + 2 * DAY))
    assert kept(tmp_path) == 0


def test_old_evidence_is_removed_before_its_result(tmp_path: Path) -> None:
    one, policy = evaluation("a"), EvidencePolicy(retention_s=DAY)
    with opened(tmp_path, policy) as store:
        commit(store, [one])
    with opened(tmp_path, policy) as store:
        commit(store, [], WALL + DAY + 1)
        assert stored(tmp_path, one) is None
        assert len(with_results(tmp_path, one)) == 1


def test_evidence_beyond_its_space_loses_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathgauge.collector.store.retention.CLEAN_S", 0.0)
    runs = [evaluation(str(number)) for number in range(40)]
    with opened(tmp_path, EvidencePolicy(max_bytes=10_000)) as store:
        for number, one in enumerate(runs):
            commit(store, [one], WALL + number)
        with reading(tmp_path) as connection:
            [size] = connection.execute("SELECT sum(length(body)) FROM evidence").fetchone()
        found = [bool(stored(tmp_path, one)) for one in runs]
    assert 9_000 < size <= 10_000
    assert found == sorted(found)


def test_damaged_evidence_is_not_shown(tmp_path: Path) -> None:
    one = evaluation("a")
    with opened(tmp_path) as store:
        commit(store, [one])
    with closing(sqlite3.connect(tmp_path / "pathgauge.db")) as connection, connection:
        connection.execute("UPDATE evidence SET scenario = 'another'")
    assert stored(tmp_path, one) is None


def test_evidence_is_about_a_kilobyte(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [evaluation("a")])
        with reading(tmp_path) as connection:
            [size] = connection.execute("SELECT size FROM evidence").fetchone()
    assert size < 1_000


def test_evidence_that_cannot_be_built_keeps_no_other_from_being_stored(tmp_path: Path) -> None:
    good, bad = evaluation("good"), evaluation("bad")
    matcher_beside_a_keyword = {"$any": True, "other": Near(1.0)}
    turn = replace(
        EXPECTED, tool_calls=(ExpectedCall("pay", {"amount": matcher_beside_a_keyword}),)
    )
    bad = replace(bad, match=replace(bad.match, turn=turn))
    with opened(tmp_path) as store:
        with capture_logs() as logs:
            commit(store, [bad, good])
        assert [line["event"] for line in logs] == ["evidence cannot be stored"]
        assert stored(tmp_path, bad) is None
        assert stored(tmp_path, good) == evidence_of(good)
        assert len(with_results(tmp_path, bad)) == 1
