"""HTTP to one server: requests come in, responses of bounded size go out.

A request has the headers that are made here and no others: what a client library adds from the
environment, and cookies, stay here.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, Iterator
from contextlib import contextmanager

import httpcore2
import httpx2

from pathgauge.scorers.judges.model_client.allowed_connections import CheckedBackend

MAX_BYTES = 2**20
"""Of the body of a response."""


class ResponseTooLargeError(Exception):
    """A body has more than `MAX_BYTES`, or is compressed, so that nobody knows how much it is."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Connections to one server. `authorization` is the header of that name; empty: none is sent."""

    def __init__(
        self,
        backend: CheckedBackend,
        tls: ssl.SSLContext | None,
        authorization: str,
        connections: int,
    ) -> None:
        self._authorization = authorization
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=connections,
            keepalive_expiry=30.0,
            network_backend=backend,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One exchange. Raises `AddressRefusedError`, `ResponseTooLargeError` and what httpx2
        raises for connections.
        """
        body = await request.aread()
        with _as_httpx(request):
            response = await self._pool.handle_async_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=self._headers(request, len(body)),
                    content=body,
                    extensions=request.extensions,
                )
            )
            try:
                content = await _read(response)
            finally:
                await response.aclose()
        return httpx2.Response(response.status, headers=response.headers, content=content)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    def _headers(self, request: httpx2.Request, length: int) -> list[tuple[str, str]]:
        headers = {
            "Host": request.headers["Host"],
            "User-Agent": "pathgauge",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "Content-Length": str(length),
        }
        if self._authorization:
            headers["Authorization"] = self._authorization
        return [*headers.items()]


async def _read(response: httpcore2.Response) -> bytes:
    for name, value in response.headers:
        if name.lower() == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise ResponseTooLargeError
    assert isinstance(response.stream, AsyncIterable)
    content = bytearray()
    async for part in response.stream:
        content += part
        if len(content) > MAX_BYTES:
            raise ResponseTooLargeError
    return bytes(content)


@contextmanager
def _as_httpx(request: httpx2.Request) -> Iterator[None]:
    """What httpcore raises as what httpx raises, without the texts of the system."""
    try:
        yield
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
        raise httpx2.ConnectError("no connection", request=request) from None
    except httpcore2.TimeoutException:
        raise httpx2.ReadTimeout("no answer in time", request=request) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError):
        raise httpx2.ReadError("the connection broke", request=request) from None
