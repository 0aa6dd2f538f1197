"""The page that proposes a reference from kept runs, and its file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from starlette.testclient import TestClient

from pathgauge.collector.core.evaluations.label_values import label_value
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.collector.testing import trace_id
from support.answered import answer, given
from support.api_client import sources
from support.evaluated import commit, evaluation, opened
from support.sessions import session
from support.web_client import changed, site, text_of

LONG = "Where is my parcel? " * 12
PAGE, FILE = "/references/proposal", "/references/proposal/reference.yaml"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    folder = tmp_path_factory.mktemp("store")
    runs = [evaluation(f"{n}", "passed", scenario="new", matched=False) for n in range(30)]
    odd = evaluation("odd", "stopped", scenario="new", matched=False)
    few = [evaluation(f"few {n}", "passed", scenario="few", matched=False) for n in range(2)]
    shared = [
        evaluation(f"{tenant} {n}", "passed", scenario="shared", tenant=tenant, matched=False)
        for tenant in ("north", "south")
        for n in range(12)
    ]
    long = [evaluation(f"l{n}", "passed", scenario=LONG, matched=False) for n in range(12)]
    mixed = [
        evaluation(f"m{tenant}{n}", "passed", scenario="mixed", tenant=tenant, matched=False)
        for tenant in ("", "north")
        for n in range(12 if tenant else 14)
    ]
    with opened(folder, EvidencePolicy(keep="all")) as store:
        talk = session("30", "talk", scenario="new")
        commit(store, [*runs, odd, *few, *shared, *long, *mixed, talk])
        commit(store, given(*(answer(f"{n}", "up") for n in range(3)), answer("29", "down")))
    return site(sources(folder, unknown=[UnknownScenario("", "new", (), 31)]))


def test_the_references_lead_to_a_proposal_with_its_evidence(pages: TestClient) -> None:
    assert f'href="{PAGE}?scenario=new"' in pages.get("/references").text
    answer = pages.get(f"{PAGE}?scenario=new")
    assert answer.status_code == 200
    page = text_of(answer.text)
    assert "Learned from 29 of 30 kept runs; it accepts 29 of them." in page
    said = "People call 3 runs good, of which it accepts 3, and 1 other bad, of which it accepts 1."
    assert said in page
    assert "does not call track 1" in page
    assert "find_order.order 29 of 29 'A-1'" in page
    assert f'href="{FILE}?scenario=new"' in answer.text


def test_the_file_is_the_proposal(pages: TestClient) -> None:
    answer = pages.get(f"{FILE}?scenario=new")
    assert answer.headers["content-disposition"].startswith("attachment")
    proposed = yaml.safe_load(answer.text)
    assert proposed["expected_tools"] == [
        {"name": "find_order", "args": {"order": "A-1"}},
        {"name": "track", "args": {}},
    ]


def test_too_few_runs_are_no_basis(pages: TestClient) -> None:
    page = text_of(pages.get(f"{PAGE}?scenario=few").text)
    assert "2 usable runs are kept, and a proposal needs 10" in page
    assert pages.get(f"{FILE}?scenario=few").status_code == 404


def test_runs_that_are_no_basis_are_counted_with_the_reason(tmp_path: Path) -> None:
    flags = frozenset({"redacted"})
    with opened(tmp_path, EvidencePolicy(keep="all")) as store:
        commit(store, [changed(f"{n}", "passed", flags=flags) for n in range(12)])
        commit(store, [changed(f"failed {n}") for n in range(2)])
    page = text_of(site(sources(tmp_path)).get(f"{PAGE}?scenario=parcel").text)
    assert "nothing is learned from: 12 with incomplete telemetry, 2 failed." in page
    assert "0 usable runs are kept" in page


def test_runs_of_several_tenants_are_not_mixed(pages: TestClient) -> None:
    assert pages.get(f"{PAGE}?scenario=shared").status_code == 422
    assert pages.get(f"{PAGE}?scenario=shared&tenant=north").status_code == 200
    assert "Learned from 12 of 12" in text_of(
        pages.get(f"{PAGE}?scenario=shared&tenant=north").text
    )


def test_runs_without_a_tenant_are_those_of_a_link_without_one(pages: TestClient) -> None:
    page = text_of(pages.get(f"{PAGE}?scenario=mixed").text)
    assert "Learned from 14 of 14 kept runs" in page


@pytest.mark.parametrize("name", [LONG, LONG[:200], label_value(LONG)])
def test_a_long_scenario_id_is_found_by_what_lists_and_metrics_show_of_it(
    pages: TestClient, name: str
) -> None:
    page = text_of(pages.get(PAGE, params={"scenario": name}).text)
    assert "Learned from 12 of 12 kept runs" in page
    assert yaml.safe_load(pages.get(FILE, params={"scenario": name}).text)["scenario"] == LONG


def test_examples_of_what_was_left_out_stay_with_the_tenant(tmp_path: Path) -> None:
    made = [
        evaluation(
            f"{n}",
            "passed" if n else "stopped",
            scenario="new",
            tenant="north",
            matched=False,
        )
        for n in range(30)
    ]
    with opened(tmp_path, EvidencePolicy(keep="all")) as store:
        commit(store, made)
    page = site(sources(tmp_path)).get(f"{PAGE}?scenario=new").text
    assert f'href="/results?trace_id={trace_id("0")}&amp;tenant=north"' in page
    assert f'href="{FILE}?scenario=new&amp;tenant=north"' in page


def test_another_file_does_not_exist(pages: TestClient) -> None:
    assert pages.get("/references/proposal/other.yaml?scenario=new").status_code == 404
