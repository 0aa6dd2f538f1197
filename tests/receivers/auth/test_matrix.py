"""Every port with every kind of credentials, over real servers and real TLS: the answer and the
tenant.
"""

from __future__ import annotations

import asyncio
import http.client

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from pathgauge.collector.receivers.grpc import TRACE_SERVICE
from support.guarded import READER, UNKNOWN, WORKLOAD, A, B, Guarded, Port

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("port", "token", "answer", "tenant"),
    [
        pytest.param("grpc", None, "UNAUTHENTICATED", None, id="grpc, none"),
        pytest.param("grpc", UNKNOWN, "UNAUTHENTICATED", None, id="grpc, bad"),
        pytest.param("grpc", READER, "UNAUTHENTICATED", None, id="grpc, of Prometheus"),
        pytest.param("grpc", B, "OK", "team-b", id="grpc, of the other"),
        pytest.param("grpc", A, "OK", "team-a", id="grpc, good"),
        pytest.param("http", None, "401", None, id="http, none"),
        pytest.param("http", UNKNOWN, "401", None, id="http, bad"),
        pytest.param("http", READER, "401", None, id="http, of Prometheus"),
        pytest.param("http", B, "200", "team-b", id="http, of the other"),
        pytest.param("http", A, "200", "team-a", id="http, good"),
        pytest.param("metrics", None, "401", None, id="metrics, none"),
        pytest.param("metrics", UNKNOWN, "401", None, id="metrics, bad"),
        pytest.param("metrics", A, "401", None, id="metrics, of a tenant"),
        pytest.param("metrics", READER, "200", None, id="metrics, good"),
    ],
)
async def test_tokens(
    tokens: Guarded, port: Port, token: str | None, answer: str, tenant: str | None
) -> None:
    assert await tokens.ask(port, tokens.authority.client(), token) == answer
    assert tokens.tenants() == ([] if tenant is None else [tenant])


@pytest.mark.parametrize(
    ("port", "who", "answer", "tenant"),
    [
        pytest.param("grpc", None, "no connection", None, id="grpc, none"),
        pytest.param(
            "grpc", ("strange", "agents.team-a.internal"), "no connection", None, id="grpc, bad"
        ),
        pytest.param(
            "grpc",
            ("authority", "agents.team-c.internal"),
            "PERMISSION_DENIED",
            None,
            id="grpc, of nobody",
        ),
        pytest.param(
            "grpc", ("authority", "agents.team-b.internal"), "OK", "team-b", id="grpc, of the other"
        ),
        pytest.param(
            "grpc", ("authority", "agents.team-a.internal"), "OK", "team-a", id="grpc, good"
        ),
        pytest.param("http", None, "no connection", None, id="http, none"),
        pytest.param(
            "http", ("strange", "agents.team-a.internal"), "no connection", None, id="http, bad"
        ),
        pytest.param(
            "http", ("authority", "agents.team-c.internal"), "403", None, id="http, of nobody"
        ),
        pytest.param(
            "http",
            ("authority", "agents.team-b.internal"),
            "200",
            "team-b",
            id="http, of the other",
        ),
        pytest.param(
            "http", ("authority", "agents.team-a.internal"), "200", "team-a", id="http, good"
        ),
        pytest.param("metrics", None, "no connection", None, id="metrics, none"),
        pytest.param(
            "metrics", ("strange", "prometheus.internal"), "no connection", None, id="metrics, bad"
        ),
        pytest.param(
            "metrics",
            ("authority", "agents.team-a.internal"),
            "no connection",
            None,
            id="metrics, of a tenant",
        ),
        pytest.param(
            "metrics", ("of_metrics", "prometheus.internal"), "200", None, id="metrics, good"
        ),
    ],
)
async def test_client_certificates(
    mutual: Guarded, port: Port, who: tuple[str, str] | None, answer: str, tenant: str | None
) -> None:
    """`who` is an issuer and a name."""
    client = (
        mutual.authority.client(who[1], of=getattr(mutual, who[0]))
        if who
        else mutual.authority.client()
    )
    assert await mutual.ask(port, client, None) == answer
    assert mutual.tenants() == ([] if tenant is None else [tenant])


@pytest.mark.parametrize(("port", "answer"), [("grpc", "OK"), ("http", "200")])
async def test_a_uri_in_a_certificate_stands_for_a_tenant(
    mutual: Guarded, port: Port, answer: str
) -> None:
    assert await mutual.ask(port, mutual.authority.workload(WORKLOAD), None) == answer
    assert mutual.tenants() == ["team-b"]


@pytest.mark.parametrize("port", ["grpc", "http"])
@pytest.mark.parametrize("signal", ["traces", "logs"])
async def test_a_refusal_is_counted_for_its_signal(
    tokens: Guarded, port: Port, signal: str
) -> None:
    before = tokens.telemetry.requests.get(port, signal, "unauthenticated")
    await tokens.ask(port, tokens.authority.client(), None, signal=signal)
    assert tokens.telemetry.requests.get(port, signal, "unauthenticated") == before + 1


async def test_the_same_trace_of_two_tenants_stays_two_traces(tokens: Guarded) -> None:
    for port in ("grpc", "http"):
        for token in (A, B):
            await tokens.ask(port, tokens.authority.client(), token)
    assert {span.trace_id for batch in tokens.batches for span in batch.spans} == {
        tokens.batches[0].spans[0].trace_id
    }
    assert tokens.tenants() == ["team-a", "team-b", "team-a", "team-b"]


async def test_a_refusal_over_http_says_what_is_expected(tokens: Guarded) -> None:
    status, headers = await asyncio.to_thread(
        tokens.request, "http", "/v1/traces", b"", tokens.authority.client(), None
    )
    assert (status, headers["www-authenticate"], headers["content-type"]) == (
        401,
        "Bearer",
        "application/x-protobuf",
    )


async def test_a_refusal_needs_no_body(tokens: Guarded) -> None:
    """A head that promises a body is answered before the body comes."""
    context = tokens.authority.client().context(tokens.folder)
    reader, writer = await asyncio.open_connection("localhost", tokens.port("http"), ssl=context)
    writer.write(
        b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length:"
        b" 16000000\r\n\r\n"
    )
    assert await asyncio.wait_for(reader.readline(), 5) == b"HTTP/1.1 401 Unauthorized\r\n"
    writer.transport.abort()


async def test_a_refusal_over_grpc_needs_no_message_and_no_retry(tokens: Guarded) -> None:
    async with tokens.channel(tokens.authority.client()) as channel:
        call = channel.stream_unary(f"/{TRACE_SERVICE}/Export")()  # type: ignore[var-annotated]
        assert await asyncio.wait_for(call.code(), 5) == grpc.StatusCode.UNAUTHENTICATED
        assert (
            await call.details() == "found no credentials, expected Authorization: Bearer <token>"
        )
        assert list(await call.trailing_metadata()) == []


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/healthz", "200"),
        ("/readyz", "200"),
        ("/activez", "200"),
        ("/", "401"),
        ("/nowhere", "401"),
    ],
)
async def test_probes_need_no_token(tokens: Guarded, path: str, answer: str) -> None:
    assert await tokens.ask("metrics", tokens.authority.client(), None, path) == answer


async def test_the_health_service_needs_no_token(tokens: Guarded) -> None:
    async with tokens.channel(tokens.authority.client()) as channel:
        check: grpc.aio.UnaryUnaryMultiCallable[HealthCheckRequest, HealthCheckResponse] = (
            channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                HealthCheckRequest.SerializeToString,
                HealthCheckResponse.FromString,
            )
        )
        assert (await check(HealthCheckRequest())).status == HealthCheckResponse.SERVING


@pytest.mark.parametrize("port", ["grpc", "http", "metrics"])
async def test_plain_text_is_no_way_around_tls(tokens: Guarded, port: Port) -> None:
    connection = http.client.HTTPConnection("localhost", tokens.port(port), timeout=10)
    await asyncio.to_thread(connection.request, "GET", "/metrics")
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        await asyncio.to_thread(connection.getresponse)
    connection.close()
