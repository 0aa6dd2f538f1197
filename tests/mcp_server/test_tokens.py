"""Who reads what over MCP: the tokens of the collector, over both transports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support import mcp_traffic as traffic
from support.certificates import Authority
from support.running import Collector
from support.turns import trace_id

pytestmark = pytest.mark.slow

READER, ALPHA, BETA, WRONG = (f"token-of-{name}-0123456789" for name in ("r", "a", "b", "w"))
RUN = traffic.bad()
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
HEADERS = {"accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """A collector with a failed run of the tenant `alpha`, and one of `beta`."""
    folder = tmp_path_factory.mktemp("collector")
    for name, token in (("reader", READER), ("alpha", ALPHA), ("beta", BETA)):
        (folder / name).write_text(token)
        (folder / name).chmod(0o600)
    with traffic.collector(
        folder,
        auth={"tenants": {name: {"token_file": name} for name in ("alpha", "beta")}},
        exporters={"prometheus": {"endpoint": "127.0.0.1:0", "token_file": "reader"}},
    ) as running:
        traffic.send(running, RUN, token=ALPHA, reader=READER)
        traffic.send(running, traffic.bad(version="9"), token=BETA, reader=READER)
        yield running


@pytest.fixture(scope="module")
def address(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`pathgauge mcp --http` before the collector."""
    log = tmp_path_factory.mktemp("mcp") / "log"
    with traffic.serving(traffic.url(collector), log) as found:
        yield found


async def seen(client: Any) -> list[tuple[str, str]]:
    """Tenants and versions of the failures that a client sees."""
    failures = await client.call_tool("failures")
    assert not failures.is_error, traffic.text_of(failures)
    newest = failures.structured_content["newest"]
    assert failures.structured_content["failures"] == len(newest)
    return sorted((one["tenant"], one["agent_version"]) for one in newest)


SEEN = {READER: [("alpha", "2"), ("beta", "9")], ALPHA: [("alpha", "2")], BETA: [("beta", "9")]}


@pytest.mark.parametrize("token", SEEN)
async def test_a_reader_sees_all_and_a_tenant_its_own(
    collector: Collector, address: str, token: str, tmp_path: Path
) -> None:
    async with traffic.over_http(address, token) as client:
        assert await seen(client) == SEEN[token]
    async with traffic.stdio(traffic.url(collector), token=token) as client:
        assert await seen(client) == SEEN[token]
    file = tmp_path / "token"
    file.write_text(f"# of me\n\n{token}\n{WRONG}\n")
    async with traffic.stdio(traffic.url(collector), "--token-file", str(file)) as client:
        assert await seen(client) == SEEN[token]


async def test_the_summary_of_a_tenant_has_no_counts_of_all_tenants(address: str) -> None:
    for token, counted in ((READER, True), (ALPHA, False)):
        async with traffic.over_http(address, token) as client:
            summary = await client.call_tool("summary")
        assert not summary.is_error, traffic.text_of(summary)
        assert summary.structured_content is not None
        assert ("telemetry" in summary.structured_content) is counted
        tenants = {one["tenant"] for one in summary.structured_content["series"]}
        assert tenants == ({"alpha", "beta"} if counted else {"alpha"})


async def test_a_tenant_cannot_ask_for_the_data_of_another(address: str) -> None:
    async with traffic.over_http(address, BETA) as client:
        trace = await client.call_tool("explain_result", {"trace_id": trace_id(RUN)})
        assert (trace.is_error, "no result of this trace" in traffic.text_of(trace)) == (True, True)
        for tool, given in {"failures": {}, "compare_versions": {"agent": "desk"}}.items():
            refused = await client.call_tool(tool, {**given, "tenant": "alpha"})
            assert refused.is_error
            assert "another tenant than that of the token" in traffic.text_of(refused)
        versions = await client.call_tool("compare_versions", {"agent": "desk", "tenant": "beta"})
        assert versions.structured_content is not None
        assert [one["version"] for one in versions.structured_content["versions"]] == ["9"]


@pytest.mark.parametrize("token", ["", WRONG])
async def test_no_token_and_a_wrong_one_are_refused(
    collector: Collector, address: str, token: str
) -> None:
    authorization = {"authorization": f"Bearer {token}"} if token else {}
    for method in ("GET", "POST", "DELETE"):
        refused = httpx2.request(
            method, address, json=INITIALIZE, headers={**HEADERS, **authorization}
        )
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    async with traffic.stdio(traffic.url(collector), token=token) as client:
        result = await client.call_tool("summary")
    assert (result.is_error, traffic.text_of(result)) == (
        True,
        "Error executing tool summary: expected Authorization: Bearer <token> (the collector wants"
        " a token, or another one)",
    )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"host": "attacker.example"}, 421),
        ({"origin": "https://attacker.example"}, 403),
        ({"authorization": f"Basic {READER}"}, 401),
    ],
)
def test_requests_of_other_sites_are_refused(
    address: str, headers: dict[str, str], status: int
) -> None:
    sent = {**HEADERS, "authorization": f"Bearer {READER}", **headers}
    assert httpx2.post(address, json=INITIALIZE, headers=sent).status_code == status


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_post_is_answered_because_there_are_no_sessions(address: str, method: str) -> None:
    headers = {"accept": "text/event-stream", "authorization": f"Bearer {READER}"}
    found = httpx2.request(method, address, headers=headers)
    assert (found.status_code, found.headers["allow"]) == (405, "POST")


def test_a_request_of_a_megabyte_is_refused(address: str) -> None:
    body = {**INITIALIZE, "params": "x" * (1 << 20)}
    sent = {**HEADERS, "authorization": f"Bearer {READER}"}
    assert httpx2.post(address, json=body, headers=sent).status_code == 413


def test_without_its_collector_the_server_answers_503(tmp_path: Path) -> None:
    with traffic.serving("http://127.0.0.1:9", tmp_path / "log") as address:
        assert httpx2.post(address, json=INITIALIZE, headers=HEADERS).status_code == 503


async def test_a_collector_with_tls_needs_its_authority(tmp_path: Path) -> None:
    authority = Authority()
    prometheus = {"endpoint": "127.0.0.1:0", "tls": authority.write_server(tmp_path)}
    ca_file = authority.write_ca(tmp_path)["client_ca_file"]
    with traffic.collector(tmp_path, exporters={"prometheus": prometheus}) as running:
        address = traffic.url(running).replace("http:", "https:")
        async with traffic.stdio(address, "--ca-file", str(tmp_path / ca_file)) as client:
            assert not (await client.call_tool("summary")).is_error
        async with traffic.stdio(address) as client:
            assert "certificate is not accepted" in traffic.text_of(
                await client.call_tool("summary")
            )
