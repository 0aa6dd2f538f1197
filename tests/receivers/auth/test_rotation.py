"""Secrets that are rotated while the servers run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pathgauge.collector import config
from pathgauge.collector.receivers.auth.tenants import Credentials
from pathgauge.collector.service import service
from pathgauge.collector.service.service import Service
from support.certificates import Authority
from support.guarded import READER, SPANS, UNKNOWN, A, B, Guarded, Port, running
from support.running import FREE_PORTS, PATIENCE_S


async def answers(site: Guarded, trusted: Authority) -> dict[Port, str]:
    ports: tuple[Port, ...] = ("grpc", "http", "metrics")
    return {
        port: await site.ask(port, trusted.client(), READER if port == "metrics" else A)
        for port in ports
    }


UNTRUSTED = dict.fromkeys(("grpc", "http", "metrics"), "no connection")
SERVED = {"grpc": "OK", "http": "200", "metrics": "200"}


async def test_a_new_certificate_is_shown_to_the_next_connection(tmp_path: Path) -> None:
    async for site in running(Guarded(tmp_path, mutual=False)):
        old, new = site.authority, Authority()
        assert (await answers(site, old), await answers(site, new)) == (SERVED, UNTRUSTED)
        new.write_server(tmp_path)
        site.access.refresh()
        assert (await answers(site, old), await answers(site, new)) == (UNTRUSTED, SERVED)


async def test_a_new_ca_of_the_clients_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    async for site in running(Guarded(tmp_path, mutual=True)):
        old, new = (
            site.authority.client("agents.team-a.internal", of=of)
            for of in (site.authority, site.strange)
        )
        ports: tuple[Port, ...] = ("grpc", "http")
        assert [await site.ask(port, client, None) for client in (old, new) for port in ports] == [
            "OK",
            "200",
            *["no connection"] * 2,
        ]
        site.strange.write_ca(tmp_path)
        site.access.refresh()
        assert [await site.ask(port, client, None) for client in (old, new) for port in ports] == [
            *["no connection"] * 2,
            "OK",
            "200",
        ]


async def test_a_certificate_that_does_not_fit_its_key_leaves_the_old_one_in_force(
    tmp_path: Path,
) -> None:
    async for site in running(Guarded(tmp_path, mutual=False)):
        Authority().write_server(tmp_path, "next")
        (tmp_path / "next.pem").replace(tmp_path / "server.pem")
        with capture_logs() as logs:
            site.access.refresh()
            site.access.refresh()
        assert {(line["log_level"], line["key"]) for line in logs} == {("error", "key_file")}
        assert await answers(site, site.authority) == SERVED
        (tmp_path / "next.key").replace(tmp_path / "server.key")
        site.access.refresh()
        assert await answers(site, site.authority) == UNTRUSTED


async def test_a_token_that_is_added_where_another_file_has_it_opens_nothing_more(
    tmp_path: Path,
) -> None:
    access = Guarded(tmp_path, mutual=False).access
    assert access.readers is not None
    (tmp_path / "reader").write_text(f"{READER}\n{A}\n{UNKNOWN}\n")
    (tmp_path / "b").write_text(f"{B}\n{A}\n")
    with capture_logs() as logs:
        access.refresh()
        access.refresh()
    assert [access.readers.holds(token) for token in (A, B, READER, UNKNOWN)] == [
        False,
        False,
        True,
        False,
    ]
    assert [access.authenticate(Credentials((f"Bearer {token}",))) for token in (A, B)] == [
        "team-a",
        "team-b",
    ]
    shared = "found a token of auth.tenants.team-a.token_file, expected each in one file"
    assert [(line["log_level"], line["files"], line["problem"]) for line in logs] == [
        ("error", [str(tmp_path / name)], shared) for name in ("reader", "b")
    ]
    (tmp_path / "a").write_text("token-of-team-a-4567")
    (tmp_path / "b").write_text(B)
    access.refresh()
    access.refresh()
    assert [access.readers.holds(token) for token in (A, B, READER, UNKNOWN)] == [
        True,
        False,
        True,
        True,
    ]


async def test_the_service_notices_new_tokens_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "POLL_S", 0.02)
    for name, token in (("a", A), ("reader", READER)):
        (tmp_path / name).write_text(token)
        (tmp_path / name).chmod(0o600)
    guarded = {
        "auth": {"tenants": {"team-a": {"token_file": "a"}}},
        "exporters": {"prometheus": {"endpoint": "127.0.0.1:0", "token_file": "reader"}},
    }
    path = tmp_path / "pathgauge.yaml"
    path.write_text(json.dumps({**FREE_PORTS, **guarded}))
    running_service = Service(config.load(path), path)
    await running_service.start()
    try:
        http, metrics = running_service.ports["http"], running_service.ports["metrics"]
        assert [await status(http, "POST", "/v1/traces", token) for token in (A, B, READER)] == [
            200,
            401,
            401,
        ]
        assert [await status(metrics, "GET", "/metrics", token) for token in (A, B, READER)] == [
            401,
            401,
            200,
        ]
        (tmp_path / "a").write_text(B)
        async with asyncio.timeout(PATIENCE_S):
            while await status(http, "POST", "/v1/traces", B) != 200:
                await asyncio.sleep(0.01)
        assert await status(http, "POST", "/v1/traces", A) == 401
        assert running_service.telemetry.requests.get("http", "traces", "unauthenticated") >= 3
    finally:
        await running_service.stop()


async def status(port: int, method: str, path: str, token: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = SPANS if method == "POST" else b""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection:"
        " close\r\n"
    )
    head += f"Content-Type: application/x-protobuf\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])


async def test_the_service_gives_every_server_its_certificate_and_its_caps(tmp_path: Path) -> None:
    authority = Authority()
    server = {"endpoint": "127.0.0.1:0", "tls": authority.write_server(tmp_path)}
    guarded = {
        "receivers": {
            "otlp": {"protocols": {"grpc": server, "http": {**server, "max_connections": 1}}}
        },
        "exporters": {"prometheus": server},
    }
    path = tmp_path / "pathgauge.yaml"
    path.write_text(json.dumps({**FREE_PORTS, **guarded}))
    running_service = Service(config.load(path), path)
    await running_service.start()
    context = authority.client().context(tmp_path)
    context.set_alpn_protocols(["h2", "http/1.1"])
    writers = []
    for port in running_service.ports.values():
        _, writer = await asyncio.open_connection("localhost", port, ssl=context)
        writers.append(writer)
    reader, writer = await asyncio.open_connection("localhost", running_service.ports["http"])
    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
    for each in (*writers, writer):
        each.close()
    assert running_service.telemetry.connections_refused.items() == [(("http", "too_many"), 1)]
    await running_service.stop()
