"""The API compares the versions of an agent, and shows what a scenario expects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from pathgauge import ToolTrajectoryAvgScore
from pathgauge.collector.api.endpoints import PREFIX
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evaluations.label_values import label_value
from pathgauge.collector.core.references import Match
from pathgauge.collector.store.queries import versions
from pathgauge.scorers.matching.value_matchers import Pattern
from pathgauge.scorers.types import ExpectedCall, Reference, ReferenceTurn
from support.api_client import NORTH, READER, client, sources, with_tokens
from support.evaluated import EXPECTED, WALL, commit, evaluation, opened

PARCEL = Reference("parcel", (EXPECTED,), "v2", "parcel.yaml:7")
CALLS = [{"name": "find_order", "args": {"order": "A-1"}}, "track"]
MATCHING = ReferenceTurn(
    tool_calls=(ExpectedCall("find_order", {"order": Pattern("A-[0-9]")}),),
    alternatives=((ExpectedCall("track"),),),
    forbidden=(ExpectedCall("cancel", {"order": Pattern(".*")}),),
    agents={"clerk": ReferenceTurn(tool_calls=(ExpectedCall("track", {"n": Pattern("x")}),))},
)
AS_WRITTEN = {
    "scenario": "matching",
    "expected_tools": [{"name": "find_order", "args": {"order": {"$regex": "A-[0-9]"}}}],
    "alternatives": [["track"]],
    "forbidden_tools": [{"name": "cancel", "args": {"order": {"$regex": ".*"}}}],
    "agents": {"clerk": {"expected_tools": [{"name": "track", "args": {"n": {"$regex": "x"}}}]}},
}


def against(name: str, turn: ReferenceTurn) -> Evaluation:
    """An evaluation in the scenario `name` against its second turn."""
    invocation = replace(evaluation(name).invocation, scenario_id=name)
    reference = Reference(name, (EXPECTED, turn), "v5", "m.yaml:3")
    evaluator = Evaluator((Criterion("trajectory", ToolTrajectoryAvgScore(), 1.0),))
    return evaluator.evaluate(invocation, Match(reference, turn, 1))


RUNS = (
    evaluation("a", "passed"),
    evaluation("b"),
    evaluation("c", version="2"),
    evaluation("d", version="2", matched=False),
    evaluation("e", scenario="other"),
    evaluation("n", tenant="north", version="3"),
    against("no tools", ReferenceTurn(response="Hello.")),
    against("matching", MATCHING),
)
"""One a second, in this order."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with opened(folder) as store:
        for number, one in enumerate(RUNS):
            commit(store, [one], WALL + number)
    return folder


@pytest.fixture
def api(folder: Path) -> TestClient:
    return client(sources(folder, references=[PARCEL]))


def get(api: TestClient, path: str, token: str = "") -> Any:
    answer = api.get(PREFIX + path, headers={"authorization": f"Bearer {token}"} if token else {})
    assert answer.status_code == 200, answer.text
    return answer.json()


def compared(found: Any) -> list[tuple[str, dict[str, int]]]:
    return [(one["version"], one["verdicts"]) for one in found["versions"]]


def test_versions_are_compared_by_verdicts_and_means(api: TestClient) -> None:
    criterion = {"criterion": "trajectory", "threshold": 1.0}
    assert get(api, "/versions?tenant=&agent=support&scenario=parcel") == {
        "versions": [
            {
                "version": "2",
                "invocations": 2,
                "verdicts": {"not_evaluated": 1, "failed": 1},
                "first": "2026-11-18T11:06:42Z",
                "last": "2026-11-18T11:06:43Z",
                "criteria": [{**criterion, "mean": 0.0, "samples": 1, "failed": 1}],
            },
            {
                "version": "1",
                "invocations": 2,
                "verdicts": {"failed": 1, "passed": 1},
                "first": "2026-11-18T11:06:40Z",
                "last": "2026-11-18T11:06:41Z",
                "criteria": [{**criterion, "mean": 0.5, "samples": 2, "failed": 1}],
            },
        ],
        "complete": True,
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("scenario=other", [("1", {"failed": 1})]),
        ("agent=another", []),
        ("tenant=north", [("3", {"failed": 1})]),
        (
            "tenant=&since=2026-11-18T11:06:43Z&until=2026-11-18T11:06:44Z",
            [("2", {"not_evaluated": 1})],
        ),
    ],
)
def test_versions_have_filters(
    api: TestClient, query: str, expected: list[tuple[str, dict[str, int]]]
) -> None:
    assert compared(get(api, f"/versions?{query}")) == expected


def test_a_tenant_compares_only_its_own_versions(folder: Path, tmp_path: Path) -> None:
    api = client(sources(folder), with_tokens(tmp_path))
    assert compared(get(api, "/versions?tenant=", NORTH)) == [("3", {"failed": 1})]
    assert len(compared(get(api, "/versions", READER))) == 3


def test_a_mean_without_values_is_unknown(api: TestClient) -> None:
    [found] = get(api, "/versions?scenario=no tools")["versions"]
    assert [(one["mean"], one["samples"]) for one in found["criteria"]] == [(None, 0)]


@pytest.mark.parametrize(
    ("limit", "most", "expected"),
    [
        ("MAX_RESULTS", 3, [("1", 2), ("3", 1)]),
        ("MAX_VERSIONS", 1, [("1", 5)]),
        ("MAX_VERSIONS", 2, [("1", 5), ("3", 1)]),
    ],
)
def test_only_the_newest_results_and_versions_are_compared(
    api: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    most: int,
    expected: list[tuple[str, int]],
) -> None:
    monkeypatch.setattr(versions, limit, most)
    found = get(api, "/versions")
    assert found["complete"] is False
    assert [(one["version"], one["invocations"]) for one in found["versions"]] == expected


def test_results_of_several_pages_are_compared(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = get(api, "/versions")
    monkeypatch.setattr(versions, "MAX_LIMIT", 2)
    assert get(api, "/versions") == whole
    monkeypatch.setattr(versions, "MAX_LIMIT", 1)
    assert get(api, "/versions")["complete"] is False


def test_the_active_reference_is_shown(api: TestClient) -> None:
    assert get(api, "/reference?scenario=parcel") == {
        "scenario_id": "parcel",
        "version": "v2",
        "source": "parcel.yaml:7",
        "active": True,
        "turn_index": None,
        "document": {
            "scenario": "parcel",
            "input": "Where is my parcel?",
            "expected_tools": CALLS,
            "expected_response": "It is in Bremen.",
        },
    }


def test_a_reference_that_is_gone_is_the_turn_of_the_newest_run(api: TestClient) -> None:
    assert get(api, "/reference?scenario=matching") == {
        "scenario_id": "matching",
        "version": "v5",
        "source": "m.yaml:3",
        "active": False,
        "turn_index": 1,
        "document": AS_WRITTEN,
    }


def test_a_tenant_does_not_see_the_turn_of_another(folder: Path, tmp_path: Path) -> None:
    api = client(sources(folder), with_tokens(tmp_path))
    headers = {"authorization": f"Bearer {NORTH}"}
    assert api.get(f"{PREFIX}/reference?scenario=matching", headers=headers).status_code == 404
    assert get(api, "/reference?scenario=parcel", NORTH)["version"] == "v1"


def test_the_label_of_a_long_scenario_finds_its_reference() -> None:
    name = "refund " * 30
    api = client(sources(None, references=[Reference(name, (EXPECTED,), "v1")]))
    assert get(api, f"/reference?scenario={label_value(name)}")["scenario_id"] == name


@pytest.mark.parametrize("scenario", ["unknown", ""])
def test_a_scenario_without_any_reference_is_not_found(api: TestClient, scenario: str) -> None:
    found = api.get(f"{PREFIX}/reference?scenario={scenario}")
    assert (found.status_code, found.json()["detail"]) == (
        404,
        "no reference of this scenario is active, or kept with a result",
    )


def test_a_matcher_without_a_written_form_is_explained(folder: Path) -> None:
    call = ExpectedCall("track", {"$key": Pattern("x")})
    unwritten = Reference("unwritten", (ReferenceTurn(tool_calls=(call,)),))
    api = client(sources(folder, references=[unwritten]))
    found = api.get(f"{PREFIX}/reference?scenario=unwritten")
    assert (found.status_code, "has no written form" in found.text) == (404, True)


def test_without_a_store_no_run_is_compared() -> None:
    api = client(sources(None, references=[PARCEL]))
    assert get(api, "/versions") == {"versions": [], "complete": True}
    assert get(api, "/reference?scenario=parcel")["active"] is True
    assert api.get(f"{PREFIX}/reference?scenario=matching").status_code == 404
