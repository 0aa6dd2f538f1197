"""`pathgauge curate` and `pathgauge lint` read what a collector has kept, and what people said of
it, from its store or over HTTP.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import Result

from pathgauge.collector.core.evaluations.evaluator import SessionResult
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.store.evidence.table import EvidencePolicy
from support.answered import answer, given
from support.api_client import client, sources, with_tokens
from support.evaluated import commit, evaluation, opened
from support.serving import serving
from support.sessions import session

Run = Callable[..., Result]

CONFIGURATION = {
    "store": {"path": "data"},
    "references": ["parcel.yaml"],
    "criteria": {"tool_trajectory_avg_score": 1.0},
    "feedback": {"labels": {"Great!": "passed"}},
}

RULES = VerdictRules({"great!": True})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two scenarios, of which one has a reference, and runs of another tenant."""
    folder = tmp_path_factory.mktemp("collector")
    (folder / "pathgauge.yaml").write_text(json.dumps(CONFIGURATION))
    (folder / "parcel.yaml").write_text(
        "scenario: parcel\nexpected_tools: [{name: find_order, args: {order: A-1}}, track]\n"
    )
    new = [
        evaluation(f"{n}", "passed", tenant="north", scenario="new", matched=False)
        for n in range(12)
    ]
    known = [evaluation(f"known {n}", "passed", tenant="north") for n in range(3)]
    rated = [
        evaluation(f"{label} {n}", outcome, tenant="rated", scenario="new", matched=False)
        for label, outcome, count in (("good", "passed", 20), ("bad", "stopped", 10))
        for n in range(count)
    ]
    said = [
        replace(answer(f"{label} {n}", mapped), tenant="rated")
        for label, mapped in (("good", "great!"), ("bad", "down"))
        for n in range(10)
    ]
    ended = SessionResult("idle", (("t", "s"),), ())
    sessions = [
        replace(evaluation(f"session {n}", tenant="north", scenario=of), session=ended)
        for n, of in enumerate(("parcel", "new", "new"))
    ]
    other = [evaluation(f"other {n}", tenant="south", scenario="new") for n in range(2)]
    with opened(folder / "data", EvidencePolicy(keep="all")) as opened_store:
        talk = session("known 0", "talk", tenant="north")
        commit(opened_store, [*new, *known, *rated, *sessions, *other, talk], time.time() - 30)
        commit(opened_store, given(*said), time.time() - 30)
    return folder


@pytest.fixture(scope="module")
def served(store: Path) -> Iterator[str]:
    """The URL of the API over the same store, with tokens."""
    found = replace(sources(store / "data"), verdict_rules=RULES)
    with serving(client(found, with_tokens(store)).app) as port:
        yield f"http://127.0.0.1:{port}"


def test_references_are_proposed_from_kept_runs(run: Run, source: Sequence[object]) -> None:
    result = run("curate", *source, "--tenant", "north", "--yes")
    assert result.exit_code == 0, result.stderr
    proposed = yaml.safe_load(result.stdout)
    assert proposed["scenario"] == "new"
    assert proposed["expected_tools"] == [
        {"name": "find_order", "args": {"order": "A-1"}},
        {"name": "track", "args": {}},
    ]
    assert "3 invocations left out: with a reference" in result.stderr


def test_people_decide_which_runs_are_learned_from(run: Run, source: Sequence[object]) -> None:
    result = run("curate", *source, "--tenant", "rated", "--yes")
    assert result.exit_code == 0, result.stderr
    assert "10 invocations left out: called bad by people" in result.stderr
    assert (
        "# Learned from 20 of 20 runs; accepts 20 of them, and 0 of 0 others.\n"
        "# People call 10 runs good, of which it accepts 10, and 10 others bad, of which it accepts"
        " 0.\n"
    ) in result.stdout
    calls = [call["name"] for call in yaml.safe_load(result.stdout)["expected_tools"]]
    assert calls == ["find_order", "track"]
    listed = json.loads(run("curate", *source, "--tenant", "rated", "--json").stdout)
    counts = {"good": 10, "good_accepted": 10, "bad": 10, "bad_accepted": 0}
    assert listed["people"] == counts


def test_runs_of_several_tenants_are_not_mixed(run: Run, source: Sequence[object]) -> None:
    result = run("curate", *source, "--yes")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "found results of north, rated, south, expected one: give --tenant" in result.stderr


def test_a_tenant_without_a_name_is_written_as_an_empty_text(tmp_path: Path, run: Run) -> None:
    configuration = tmp_path / "pathgauge.yaml"
    configuration.write_text(json.dumps({"store": {"path": "data"}}))
    with opened(tmp_path / "data") as opened_store:
        commit(opened_store, [evaluation(name, tenant=name) for name in ("", "north")], time.time())
    result = run("curate", "--config", configuration, "--yes")
    assert 'found results of "", north, expected one: give --tenant' in result.stderr


def test_references_are_checked_against_kept_runs(
    run: Run, source: Sequence[object], store: Path
) -> None:
    configured = () if "--config" in source else ("--config", store / "pathgauge.yaml")
    result = run("lint", *source, *configured, "--tenant", "north")
    assert result.exit_code == 0, result.stderr
    assert "1 reference, matched by 3 of the last 15 runs" in result.stdout
    assert "drop a call\t2\t0\t2/2\t2" in result.stdout
