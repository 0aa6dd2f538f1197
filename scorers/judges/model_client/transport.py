"""HTTP transport to one server, with bounded response size.

Requests carry only the headers set here: no cookies, and nothing that a client library adds from
environment variables.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, Iterator, Mapping
from contextlib import contextmanager

import httpcore2
import httpx2

from pathgauge.scorers.judges.model_client.allowed_connections import CheckedBackend

MAX_BYTES = 2**20
"""Limit for a response body."""


class ResponseTooLargeError(Exception):
    """A body has more than `MAX_BYTES`, or is compressed, so its real size is unknown."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """A connection pool to one server. `credentials` are headers of every request."""

    def __init__(
        self,
        backend: CheckedBackend,
        tls: ssl.SSLContext | None,
        credentials: Mapping[str, str],
        connections: int,
    ) -> None:
        self._credentials = credentials
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=connections,
            keepalive_expiry=30.0,
            network_backend=backend,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request and read the response.

        Raises `AddressRefusedError`, `ResponseTooLargeError` and the connection errors of httpx2.
        """
        body = await request.aread()
        with _httpx_errors(request):
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
            **self._credentials,
            "Host": request.headers["Host"],
            "User-Agent": "pathgauge",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "Content-Length": str(length),
        }
        return [*headers.items()]


async def _read(response: httpcore2.Response) -> bytes:
    for name, value in response.headers:
        if name.lower() == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise ResponseTooLargeError
    assert isinstance(response.stream, AsyncIterable)
    content = bytearray()
    async for chunk in response.stream:
        content += chunk
        if len(content) > MAX_BYTES:
            raise ResponseTooLargeError
    return bytes(content)


@contextmanager
def _httpx_errors(request: httpx2.Request) -> Iterator[None]:
    """Convert httpcore exceptions to httpx exceptions, without the system's error messages."""
    try:
        yield
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
        raise httpx2.ConnectError("no connection", request=request) from None
    except httpcore2.TimeoutException:
        raise httpx2.ReadTimeout("no answer in time", request=request) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError):
        raise httpx2.ReadError("the connection was lost", request=request) from None
