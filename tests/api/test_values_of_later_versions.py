"""What a later version of pathgauge stored is shown as it is, and hides nothing else: after a
downgrade, or in a cluster of two versions.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp import Client
from starlette.testclient import TestClient
from typer.testing import CliRunner, Result

from pathgauge.collector.api.endpoints import PREFIX
from pathgauge.collector.api.mcp.collector import Collector
from pathgauge.collector.api.mcp.server import server
from pathgauge.collector.cli import app
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.shadow_result import ShadowResult
from pathgauge.collector.core.evidence.failure import Failure
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.queries.runs import Runs, last_runs
from pathgauge.collector.store.queries.stored_result import Row, read
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sqlite.files import DATABASE
from pathgauge.scorers.types import Score
from support.api_client import client, get, sources
from support.evaluated import WALL, commit, evaluation, opened
from support.serving import serving
from support.web_client import site

SELECT = f"SELECT {', '.join(Row._fields[1:9])} FROM results"
LATER: Any = "lost_goal"
"""A value that this version does not know."""


def of_a_later_version() -> list[Evaluation]:
    failed, other = evaluation("a"), evaluation("b")
    result = replace(other.results[0], verdict=LATER)
    return [
        replace(failed, failure=Failure(LATER, "the goal was lost")),
        replace(other, results=(result,), failure=None),
        evaluation("c"),
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with opened(tmp_path / "pathgauge-data") as store:
        commit(store, of_a_later_version(), WALL)
    return tmp_path / "pathgauge-data"


@pytest.fixture
def api(folder: Path) -> TestClient:
    return client(sources(folder))


def test_results_and_groups_have_their_values_as_they_are(api: TestClient) -> None:
    found = get(api, "/results")["results"]
    assert [(one["verdict"], one["category"]) for one in found] == [
        ("failed", "wrong_argument"),
        ("not_evaluated", None),
        ("failed", LATER),
    ]
    assert found[1]["criteria"][0]["verdict"] == LATER
    assert {one["category"] for one in get(api, "/clusters")["clusters"]} == {
        "wrong_argument",
        LATER,
    }
    for one in found:
        assert get(api, f"/results/{one['trace_id']}")["results"][0]["result"]["verdict"]


def test_a_category_that_is_stored_may_be_asked_for_and_a_misspelt_one_may_not(
    api: TestClient,
) -> None:
    for path in ("/results", "/clusters"):
        assert len(next(iter(get(api, f"{path}?category={LATER}").values()))) == 1
        refused = api.get(f"{PREFIX}{path}?category=wrong_argumnet")
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("category: found 'wrong_argumnet', expected one")
        assert refused.json()["detail"].endswith("; did you mean 'wrong_argument'?")
    assert api.get(f"{PREFIX}/events?category=wrong_argumnet").status_code == 422


@pytest.fixture
def with_a_later_verdict(tmp_path: Path) -> Path:
    """A store in which the result of a tenant, the third of four, has a later verdict."""
    folder = tmp_path / "later"
    with opened(folder) as store:
        for name, tenant in (("a", "north"), ("b", "south"), ("c", "north"), ("d", "south")):
            commit(store, [evaluation(name, tenant=tenant)], WALL)
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        trace = evaluation("c").invocation.trace_id
        row = database.execute(f"{SELECT} WHERE trace_id = ?", (trace,)).fetchone()
        body = orjson.loads(row[-1])
        body["verdict"] = body["criteria"][0]["verdict"] = LATER
        written = (*row[:-1], orjson.dumps(body).decode())
        database.execute(
            "UPDATE results SET verdict = ?, body = ?, crc = ? WHERE trace_id = ?",
            (LATER, written[-1], checksum(*written), trace),
        )
    return folder


def test_results_with_a_later_verdict_are_in_every_list(with_a_later_verdict: Path) -> None:
    api = client(sources(with_a_later_verdict))
    for wanted in (
        "",
        "tenant=north",
        "scenario=parcel",
        "tenant=north&scenario=parcel",
        "tenant=north&scenario=parcel&agent=support",
        f"verdict={LATER}",
        f"verdict={LATER}&criterion=trajectory&tenant=north",
    ):
        found = get(api, f"/results?{wanted}")["results"]
        assert LATER in [one["verdict"] for one in found], wanted
    with reading(with_a_later_verdict) as connection:
        newest = last_runs(connection, "north", ["parcel"])
    assert newest == Runs({"parcel": WALL}, matched=2, invocations=2)


def test_a_verdict_that_is_misspelt_or_of_another_tenant_is_refused(
    with_a_later_verdict: Path,
) -> None:
    for api in (client(sources(with_a_later_verdict)), client(sources(None))):
        refused = api.get(f"{PREFIX}/results?verdict=fialed&criterion=trajectory")
        assert refused.status_code == 422
        assert refused.json()["detail"] == (
            "verdict: found 'fialed', expected one of passed, failed, not_evaluated, error,"
            " informational; did you mean 'failed'?"
        )
        assert api.get(f"{PREFIX}/results?verdict={LATER}&tenant=south").status_code == 422


def test_a_reason_or_flag_that_is_misspelt_is_refused_and_one_that_is_stored_is_found(
    tmp_path: Path,
) -> None:
    odd = evaluation("odd")
    made_up = replace(odd.results[0], score=Score(None, LATER), verdict="not_evaluated")
    flagged = replace(odd.invocation, flags=frozenset({LATER}))
    with opened(tmp_path / "data") as store:
        commit(store, [replace(odd, results=(made_up,), invocation=flagged)], WALL)
    api = client(sources(tmp_path / "data"))
    for name, known, wrong in (
        ("reason", "judge_timeout", "judge_timeuot"),
        ("reason", "unknown_scenario", "unknown_scenari"),
        ("flag", "missing_root", "mising_root"),
    ):
        assert len(get(api, f"/results?{name}={LATER}")["results"]) == 1
        assert get(api, f"/results?{name}={known}")["results"] == []
        for asked in (api, client(sources(None))):
            refused = asked.get(f"{PREFIX}/results?{name}={wrong}")
            assert refused.status_code == 422
            detail = refused.json()["detail"]
            assert detail.startswith(f"{name}: found '{wrong}', expected one of ")
            assert detail.endswith(f"; did you mean '{known}'?")
        assert api.get(f"{PREFIX}/events?{name}={wrong}").status_code == 422


def test_pages_show_them(folder: Path) -> None:
    pages = site(sources(folder))
    assert "lost goal" in pages.get("/results").text
    asked = pages.get(f"/results?category={LATER}")
    assert (asked.status_code, asked.text.count("the goal was lost")) == (200, 1)
    for one in of_a_later_version():
        trace, span = one.invocation.trace_id, one.invocation.span_id
        assert pages.get(f"/results/{trace}/{span}").status_code == 200


@pytest.mark.slow
def test_commands_show_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["results", *arguments], env={"COLUMNS": "200"})

    listed = run("--all", "--since", "2026-01-01", "--tenant", "")
    assert (listed.exit_code, listed.stdout.count(LATER)) == (0, 1), listed.exception
    assert run("--category", LATER, "--since", "2026-01-01").stdout.count(LATER) == 1
    for one in of_a_later_version():
        shown = run("show", one.invocation.trace_id)
        assert shown.exit_code == 0, shown.exception
    for option, misspelt, meant in (
        ("--category", "wrong_argumnet", "wrong_argument"),
        ("--reason", "no_refernce", "no_reference"),
        ("--flag", "truncatd", "truncated"),
    ):
        refused = run(option, misspelt)
        assert refused.exit_code == 2
        assert f"did you mean '{meant}'?" in refused.stderr


async def test_assistants_are_told_them(folder: Path) -> None:
    with serving(client(sources(folder)).app) as port:
        asked = server(Collector(f"http://127.0.0.1:{port}"), lambda _: None)
        async with Client(asked) as assistant:
            failures = await assistant.call_tool("failures", {"category": LATER})
            [one, other, _] = [
                await assistant.call_tool("explain_result", {"trace_id": one.invocation.trace_id})
                for one in of_a_later_version()
            ]
    assert not failures.is_error
    assert not one.is_error
    assert not other.is_error
    assert failures.structured_content is not None
    assert [found["category"] for found in failures.structured_content["clusters"]] == [LATER]


def test_results_in_shadow_may_have_more_fields() -> None:
    written = {**ShadowResult("f1", "f1 1", 0.5, None, "passed", 0.4)._asdict(), "later": 1}
    body: dict[str, Any] = {
        "verdict": "passed",
        "criteria": [],
        "reference": None,
        "unmatched": None,
        "agent_version": None,
        "flags": [],
        "start_ns": None,
        "end_ns": None,
        "shadow": {"setup": "s", "reference": None, "criteria": [written]},
    }
    text = orjson.dumps(body).decode()
    columns = ("", "ab", "cd", 0, WALL, "agent", "scenario", text)
    found = read(Row(1, *columns, checksum(*columns), 0, "passed", "", ""))
    assert found is not None
    assert found.shadow is not None
    assert found.shadow.results == (ShadowResult("f1", "f1 1", 0.5, None, "passed", 0.4),)
