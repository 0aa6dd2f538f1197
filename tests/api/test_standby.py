"""What a standby of a cluster answers: results are in the database, recent scores are not here."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector.api.endpoints import ENDPOINTS, PREFIX
from support.api_client import NORTH, READER, client, get, sources, with_tokens
from support.evaluated import commit, evaluation, opened

OF_GAUGE = ("/summary", "/unmatched", "/drift")
STANDBY = {
    "type": "about:blank",
    "title": "Service Unavailable",
    "status": 503,
    "detail": "This process is a standby, and only the gauge knows this: ask the process of the"
    " role gauge whose /activez answers 200.",
}


def test_the_endpoints_that_need_the_gauge_are_known() -> None:
    assert {one.path for one in ENDPOINTS if one.of_gauge} == set(OF_GAUGE)


@pytest.mark.parametrize("path", [*OF_GAUGE, "/drift?agent=support"])
def test_what_only_the_gauge_knows_is_not_answered_with_nothing(path: str) -> None:
    answer = client(sources(None, is_standby=True)).get(PREFIX + path)
    assert (answer.status_code, answer.json()) == (503, STANDBY)
    assert answer.headers["content-type"] == "application/problem+json"
    assert client(sources(None)).get(PREFIX + path).status_code == 200


def test_stored_results_are_answered(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as store:
        commit(store, [evaluation("one")])
        found = get(client(sources(tmp_path / "data", is_standby=True)), "/results")
    assert len(found["results"]) == 1


def test_a_token_is_checked_first(tmp_path: Path) -> None:
    api = client(sources(None, is_standby=True), with_tokens(tmp_path))
    assert api.get(f"{PREFIX}/drift").status_code == 401
    for token in (READER, NORTH):
        headers = {"authorization": f"Bearer {token}"}
        assert api.get(f"{PREFIX}/drift", headers=headers).status_code == 503
