"""The API answers with a trace as OTLP/JSON, to whom it belongs."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from pathgauge.collector.api.endpoints import PREFIX
from pathgauge.collector.offline.export_requests import export_requests
from support.api_client import NORTH, READER, SOUTH, client, sources, with_tokens
from support.evaluated import commit, evaluation, opened

OF_NORTH = evaluation("n", tenant="north")
PATH = f"{PREFIX}/traces/{OF_NORTH.invocation.trace_id}"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    folder = tmp_path_factory.mktemp("store")
    with opened(folder) as store:
        commit(store, [OF_NORTH])
    return client(sources(folder), with_tokens(folder))


@pytest.mark.parametrize(("token", "status"), [(READER, 200), (NORTH, 200), (SOUTH, 404)])
def test_a_tenant_gets_its_own_traces_and_a_reader_all(
    api: TestClient, token: str, status: int
) -> None:
    answer = api.get(PATH, headers={"authorization": f"Bearer {token}"})
    assert answer.status_code == status
    if status == 200:
        assert (answer.json()["source"], answer.json()["complete"]) == ("evidence", True)
        [request] = export_requests(answer.content)
        assert request.spans[0].name == "invoke_agent support"
    else:
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_trace_needs_a_token_and_an_unknown_one_is_a_problem(api: TestClient) -> None:
    assert api.get(PATH).status_code == 401
    headers = {"authorization": f"Bearer {READER}"}
    assert api.get(f"{PREFIX}/traces/{'0' * 32}", headers=headers).status_code == 404


def test_a_collector_without_a_store_has_no_traces() -> None:
    assert client(sources(None)).get(PATH).status_code == 404
