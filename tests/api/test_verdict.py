"""The API says whether a version of an agent is better or worse than another."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from pathgauge import ResponseMatchScore, SessionTurns
from pathgauge.collector.api.endpoints import PREFIX
from pathgauge.collector.api.queries import VerdictQuery
from pathgauge.collector.api.releases import verdict
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.store.queries import two_versions
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.queries.two_versions import ReleaseResults
from support.api_client import NORTH, READER, SOUTH, client, sources, with_tokens
from support.evaluated import commit, evaluation, opened
from support.two_versions import CRITERION, EVALUATOR, fill, runs, with_criteria

WORSE = "agent=support&version=2&against=1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with opened(folder) as store:
        fill(
            store,
            [
                *runs("1", "p" * 40),
                *runs("2", "f" * 30 + "p" * 10),
                *runs("1", "f" * 20, scenario="hard"),
                *runs("2", "f" * 20, scenario="hard"),
                *runs("1", "p" * 400, agent="steady"),
                *runs("2", "p" * 400, agent="steady"),
                *runs("1", "f" * 20, tenant="north"),
                *runs("2", "p" * 20, tenant="north"),
            ],
        )
        commit(store, [evaluation("unmatched", version="2", matched=False)])
    return folder


@pytest.fixture
def api(folder: Path) -> TestClient:
    return client(with_criteria(sources(folder)))


def get(api: TestClient, query: str, token: str = "") -> Any:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    answer = api.get(f"{PREFIX}/verdict?{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_worse_version_is_found_with_the_scenario_that_fell(api: TestClient) -> None:
    found = get(api, f"{WORSE}&tenant=")
    [metric] = found.pop("metrics")
    assert found == {
        "agent": "support",
        "version": "2",
        "against": "1",
        "verdict": "worse",
        "reason": None,
        "confidence": 0.95,
        "margin": 0.05,
        "min_effect": 0.0,
        "version_results": 61,
        "against_results": 60,
        "complete": True,
    }
    assert -0.75 < metric.pop("low") < -0.5 < metric.pop("high") < 0
    same = {"tenant": "", "pairs": 20, "difference": 0.0, "version_mean": 0.0, "against_mean": 0.0}
    assert metric == {
        "metric": "trajectory",
        "verdict": "worse",
        "reason": None,
        "measure": "mean",
        "difference": -0.5,
        "pairs": 60,
        "version_mean": pytest.approx(1 / 6),
        "against_mean": pytest.approx(2 / 3),
        "version_scored": 60,
        "version_not_scored": 0,
        "against_scored": 60,
        "against_not_scored": 0,
        "scenarios": [
            {
                "tenant": "",
                "scenario_id": "parcel",
                "pairs": 40,
                "difference": -0.75,
                "version_mean": 0.25,
                "against_mean": 1.0,
            },
            {**same, "scenario_id": "hard"},
        ],
    }


@pytest.mark.parametrize(
    ("query", "verdict"),
    [
        (WORSE, "undecided"),
        (f"{WORSE}&tenant=", "worse"),
        ("agent=support&version=1&against=2&tenant=", "better"),
        ("agent=steady&version=2&against=1", "not_worse"),
        ("agent=steady&version=2&against=1&margin=0.001", "undecided"),
        (f"{WORSE}&scenario=hard", "undecided"),
        (f"{WORSE}&tenant=&min_effect=0.7", "undecided"),
        (f"{WORSE}&tenant=north", "better"),
        (f"{WORSE}&tenant=&metric=trajectory", "worse"),
        (f"{WORSE}&tenant=&since=2026-11-18T11:07:40Z", "undecided"),
        (f"{WORSE}&tenant=&until=2026-11-18T11:07:20Z", "undecided"),
    ],
)
def test_a_verdict_has_filters_and_terms(api: TestClient, query: str, verdict: str) -> None:
    assert get(api, query)["verdict"] == verdict


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("agent=support&version=3&against=1", "no_results_of_version"),
        ("agent=support&version=2&against=0", "no_results_of_baseline"),
        ("agent=nobody&version=2&against=1", "no_results_of_version"),
    ],
)
def test_without_results_a_verdict_says_which_are_missing(
    api: TestClient, query: str, reason: str
) -> None:
    found = get(api, query)
    assert (found["verdict"], found["reason"]) == ("undecided", reason)


def test_without_a_store_on_disk_there_can_never_be_a_verdict() -> None:
    answer = client(with_criteria(sources(None))).get(f"{PREFIX}/verdict?{WORSE}")
    detail = "store: found memory, expected a store on disk: without one no results are kept"
    assert (answer.status_code, answer.json()["detail"]) == (409, detail)


def test_a_higher_confidence_gives_a_wider_interval(api: TestClient) -> None:
    [usual] = get(api, WORSE)["metrics"]
    [sure] = get(api, f"{WORSE}&confidence=0.999")["metrics"]
    assert sure["low"] < usual["low"] < usual["high"] < sure["high"]


def test_a_tenant_compares_only_its_own_results(folder: Path, tmp_path: Path) -> None:
    api = client(with_criteria(sources(folder)), with_tokens(tmp_path))
    assert get(api, f"{WORSE}&tenant=", NORTH)["version_results"] == 20
    assert get(api, WORSE, NORTH)["verdict"] == "better"
    assert get(api, WORSE, SOUTH)["reason"] == "no_results_of_version"
    assert get(api, WORSE, READER)["version_results"] == 81


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("agent=support&version=2", "against: found nothing, expected a value"),
        ("agent=&version=2&against=1", "agent: String should have at least 1 character"),
        (f"{WORSE}&confidence=1", "confidence: Input should be less than or equal to 0.9999"),
        (
            "agent=support&version=1&against=1",
            "against: Input should be another version than the one to compare",
        ),
        (f"{WORSE}&margin=nan", "margin: Input should be less than or equal to 1"),
    ],
)
def test_a_wrong_parameter_is_explained(api: TestClient, query: str, detail: str) -> None:
    answer = api.get(f"{PREFIX}/verdict?{query}")
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


def test_a_metric_that_no_active_criterion_has_is_explained(api: TestClient) -> None:
    answer = api.get(f"{PREFIX}/verdict?{WORSE}&metric=trajectory,x")
    detail = "metric: found x, expected one of trajectory, latency"
    assert (answer.status_code, answer.json()["detail"]) == (404, detail)


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ("metric=quick,cheap", ["quick,cheap"]),
        ("metric=trajectory&metric=quick,cheap", ["quick,cheap", "trajectory"]),
        ("metric=trajectory,quick", ["quick", "trajectory"]),
        ("metric=trajectory&metric=", ["trajectory"]),
        ("metric=", ["quick", "quick,cheap", "trajectory"]),
    ],
)
@pytest.mark.parametrize("endpoint", ["verdict?version=2&against=1", "shadow?"])
def test_metrics_are_given_one_by_one_because_their_names_may_have_commas(
    folder: Path, endpoint: str, metrics: str, expected: list[str]
) -> None:
    names = ("trajectory", "quick", "quick,cheap")
    named = Evaluator(tuple(replace(CRITERION, name=name) for name in names))
    api = client(with_criteria(sources(folder), named))
    answer = api.get(f"{PREFIX}/{endpoint}&agent=support&{metrics}")
    assert sorted(one["metric"] for one in answer.json()["metrics"]) == expected


def test_without_any_threshold_all_criteria_are_compared(folder: Path) -> None:
    informational = Evaluator(tuple(Criterion(c.name, c.scorer) for c in EVALUATOR.criteria))
    found = get(client(with_criteria(sources(folder), informational)), WORSE)
    assert {one["metric"] for one in found["metrics"]} == {"trajectory", "latency"}


def test_a_criterion_that_is_not_active_is_not_compared(folder: Path) -> None:
    other = Evaluator((Criterion("response", ResponseMatchScore(), 0.5),))
    [metric] = get(client(with_criteria(sources(folder), other)), WORSE)["metrics"]
    assert (metric["metric"], metric["reason"]) == ("response", "no_scores")


def test_a_criterion_that_only_one_scenario_has_is_compared(folder: Path) -> None:
    own = Evaluator((), {"parcel": (CRITERION,)})
    [metric] = get(client(with_criteria(sources(folder), own)), f"{WORSE}&tenant=")["metrics"]
    assert [one["scenario_id"] for one in metric["scenarios"]] == ["parcel"]


def test_results_without_a_scenario_are_compared_with_each_other(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store, [*runs("1", "p" * 40, scenario=""), *runs("2", "f" * 40)])
        fill(store, [*runs("2", "f" * 40, scenario=""), *runs("1", "p" * 40, agent="other")])
    [metric] = get(client(with_criteria(sources(tmp_path))), WORSE)["metrics"]
    assert [one["scenario_id"] for one in metric["scenarios"]] == [None]


def test_without_time_for_all_results_the_answer_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_versions, "ROWS_BETWEEN_LOOKS", 1)
    query = VerdictQuery.model_validate({"agent": "support", "version": "2", "against": "1"})
    found = verdict(with_criteria(sources(folder)), None, query, read_s=0.0)
    assert (found.complete, found.version_results) == (False, 0)
    assert (found.verdict, found.reason) == ("undecided", "not_all_read")


def test_every_scenario_gets_a_part_of_the_time_and_has_its_newest_results_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_versions, "ROWS_BETWEEN_LOOKS", 1)
    clock = map(float, count())
    wanted = Filter(agent="support", tenant="")
    with reading(folder) as connection:
        found = ReleaseResults(connection, wanted, "12", 63.5, lambda: next(clock))
        read = Counter((one.scenario_id, one.agent_version) for one in found.newest_first())
    assert found.complete is False
    # Each row takes a second: there is time for 31 of the 40 rows of `hard`, and 29 of 80.
    assert read == {("hard", "2"): 20, ("hard", "1"): 11, ("parcel", "2"): 29}


@pytest.mark.slow
def test_more_results_than_fit_into_a_page_are_all_compared(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [*runs("1", "p" * 300)])
        for _ in range(21):
            commit(store, [*runs("other", "p" * 500)])
        commit(store, [*runs("2", "f" * 300)])
    found = get(client(with_criteria(sources(tmp_path))), WORSE)
    assert (found["complete"], found["verdict"]) == (True, "worse")
    assert (found["version_results"], found["against_results"]) == (300, 300)


def test_a_result_is_paired_with_those_that_were_stored_before_it(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store, [*runs("1", "p"), *runs("2", "p"), *runs("1", "f")])
    [metric] = get(client(with_criteria(sources(tmp_path))), WORSE)["metrics"]
    assert (metric["pairs"], metric["difference"]) == (1, 0.0)


def test_scores_against_another_version_of_the_reference_are_not_compared(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        fill(store, [against("v1", one) for one in runs("1", "p" * 40)])
        fill(store, [against("v2", one) for one in runs("2", "f" * 40)])
    api = client(with_criteria(sources(tmp_path)))
    found = get(api, f"{WORSE}&metric=trajectory,latency")["metrics"]
    assert {one["metric"]: (one["reason"], one["pairs"]) for one in found} == {
        "trajectory": ("no_shared_scenario", 0),
        "latency": ("too_few_pairs", 40),
    }


def against(reference: str, one: Evaluation) -> Evaluation:
    """The evaluation by all criteria, against another version of the reference."""
    assert one.match.reference is not None
    changed = replace(one.match.reference, version=reference)
    return EVALUATOR.evaluate(one.invocation, replace(one.match, reference=changed))


def test_criteria_of_sessions_take_no_part_in_shadow_where_they_never_run(folder: Path) -> None:
    session = Criterion("session_turns", SessionTurns(), 3)
    api = client(with_criteria(sources(folder), Evaluator((CRITERION, session))))

    def metrics(query: str) -> list[str]:
        return [one["metric"] for one in api.get(f"{PREFIX}/{query}").json()["metrics"]]

    assert metrics("shadow?agent=support") == [CRITERION.name]
    assert metrics("shadow?agent=support&metric=session_turns") == ["session_turns"]
    assert sorted(metrics(f"verdict?{WORSE}")) == sorted([CRITERION.name, "session_turns"])
