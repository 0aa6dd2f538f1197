"""Allowed addresses of servers: public ones only, unless `allow_private` is set."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpcore2
import pytest
import trustme

from pathgauge.scorers.judges.model_client.allowed_connections import CheckedBackend
from pathgauge.scorers.judges.model_client.public_addresses import is_public
from pathgauge.scorers.judges.model_client.settings import Provider
from support.judge_server import JudgeServer, answering, redirecting
from support.loopback import KEY, VALID, RecordingObserver, model_client, outcome

RIGHT = answering(**VALID)


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "104.18.6.192",
        "2606:4700::6810:6c0",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ],
)
def test_internet_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.168.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "",
        "localhost",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
    ],
)
def test_other_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


LOOPBACK = (
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "0.0.0.0",
)
NEARBY = (
    "10.0.0.1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "192.168.1.1",
    "172.16.0.1",
    "100.64.0.1",
    "[fd00::1]",
    "[fe80::1]",
)


@pytest.mark.parametrize("host", [*LOOPBACK, *NEARBY])
async def test_private_addresses_are_refused_in_every_spelling(host: str) -> None:
    observer = RecordingObserver()
    with JudgeServer(RIGHT) as server:
        ask = model_client(
            server, observer, providers={"local": Provider(f"http://{host}:{server.port}/v1", KEY)}
        )
        assert await outcome(ask) == "judge_rejected"
        await ask.aclose()
    assert (server.requests, [code for _, code in observer.requests]) == ([], ["address"])


class Names:
    """A resolver: each query returns the next addresses; the last ones repeat."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.queries: list[tuple[str, int]] = []
        self._answers = [*answers]

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.queries.append((host, port))
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["10.0.0.1", "::1"], ["169.254.169.254"], ["fe80::1%lo"]]
)
async def test_a_host_name_with_a_private_address_is_refused(addresses: list[str]) -> None:
    with JudgeServer(RIGHT) as server:
        url = f"http://judge.example.org:{server.port}/v1"
        ask = model_client(
            server, resolve=Names(addresses), providers={"local": Provider(url, KEY)}
        )
        assert await outcome(ask) == "judge_rejected"
        await ask.aclose()
    assert server.requests == []


class Network(httpcore2.AsyncMockBackend):
    """Records where connections would go."""

    def __init__(self) -> None:
        super().__init__([])
        self.connected: list[str] = []

    async def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        self.connected.append(host)
        raise httpcore2.ConnectError


async def test_dns_rebinding_has_no_effect() -> None:
    names, network = Names(["8.8.8.8", "127.0.0.1", "2606:4700::1"], ["127.0.0.1"]), Network()
    with pytest.raises(httpcore2.ConnectError):
        await CheckedBackend(allow_private=False, resolve=names, network=network).connect_tcp(
            "rebinding.example.org", 443
        )
    assert (network.connected, names.queries) == (
        ["8.8.8.8", "2606:4700::1"],
        [("rebinding.example.org", 443)],
    )


async def test_an_allowed_host_is_connected_at_its_resolved_address() -> None:
    names = Names(["127.0.0.1"])
    with JudgeServer(RIGHT) as server:
        provider = Provider(f"http://judge.example.org:{server.port}/v1", KEY, allow_private=True)
        ask = model_client(server, resolve=names, providers={"local": provider})
        assert await outcome(ask) == "valid"
        await ask.aclose()
    assert server.requests[0].headers["host"] == f"judge.example.org:{server.port}"
    assert names.queries == [("judge.example.org", server.port)]


async def test_the_next_address_is_tried_after_a_refused_connection() -> None:
    with JudgeServer(RIGHT) as server:
        provider = Provider(f"http://judge.example.org:{server.port}/v1", KEY, allow_private=True)
        ask = model_client(
            server, resolve=Names(["127.0.0.2", "127.0.0.1"]), providers={"local": provider}
        )
        assert await outcome(ask) == "valid"
        await ask.aclose()


async def test_redirects_are_not_followed() -> None:
    with (
        JudgeServer(RIGHT) as inner,
        JudgeServer(redirecting(inner.url + "/chat/completions")) as server,
    ):
        ask = model_client(server)
        assert await outcome(ask) == "judge_rejected"
        await ask.aclose()
    assert (len(server.requests), inner.requests) == (1, [])


@pytest.fixture
def ca() -> trustme.CA:
    return trustme.CA()


def tls(ca: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(name).configure_cert(context)
    return context


@pytest.mark.parametrize(
    ("name", "expected"), [("judge.example.org", "valid"), ("127.0.0.1", "judge_unavailable")]
)
async def test_tls_verifies_the_host_name(
    name: str, expected: str, ca: trustme.CA, tmp_path: Path
) -> None:
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with JudgeServer(RIGHT, tls=tls(ca, name)) as server:
        provider = Provider(
            f"https://judge.example.org:{server.port}/v1",
            KEY,
            allow_private=True,
            ca_file=str(tmp_path / "ca.pem"),
        )
        ask = model_client(
            server, resolve=Names(["127.0.0.1"]), providers={"local": provider}, retries=0
        )
        assert await outcome(ask) == expected
        await ask.aclose()


async def test_a_server_with_an_unknown_ca_gets_no_request(ca: trustme.CA) -> None:
    with JudgeServer(RIGHT, tls=tls(ca, "127.0.0.1")) as server:
        ask = model_client(server, retries=0)
        assert await outcome(ask) == "judge_unavailable"
        await ask.aclose()
    assert server.requests == []


async def test_a_missing_ca_file_is_unavailable(tmp_path: Path) -> None:
    provider = Provider("https://judge.example.org/v1", KEY, ca_file=str(tmp_path / "gone.pem"))
    ask = model_client("", providers={"local": provider})
    assert await outcome(ask) == "judge_unavailable"
    await ask.aclose()


@pytest.mark.parametrize("allow_private", [True, False])
async def test_an_invalid_url_is_rejected(allow_private: bool) -> None:
    ask = model_client(
        "", providers={"local": Provider("http://0177.0.0.1/v1", KEY, allow_private)}
    )
    assert await outcome(ask) == "judge_rejected"
    await ask.aclose()
