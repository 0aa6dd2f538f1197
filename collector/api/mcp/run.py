"""Runs the MCP server as a process."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from pathgauge.collector.api.mcp import over_http, tokens
from pathgauge.collector.api.mcp.collector import Collector, OptionError
from pathgauge.collector.api.mcp.server import server
from pathgauge.collector.core.documents.quantities import parse_endpoint


def run_stdio(collector: Collector, token_file: Path | None) -> None:
    """Serve the process that holds the other end of standard input and output. Raises `OptionError`
    or `OSError` without a usable token.
    """
    token = tokens.source(token_file)
    with suppress(KeyboardInterrupt):
        server(collector, lambda _: token()).run("stdio")


def run_http(
    collector: Collector,
    address: str,
    hosts: Iterable[str],
    on_ready: Callable[[str], object],
    *,
    insecure_bind: bool,
) -> None:
    """Serve streamable HTTP. Raises `OptionError` for an address that other machines can reach,
    without `insecure_bind`: tokens would cross the network in plain text.
    """
    try:
        endpoint = parse_endpoint(address)
    except ValueError as error:
        raise OptionError(f"--http: found {address!r}, expected {error}") from None
    if not insecure_bind and not _is_loopback(endpoint.host):
        raise OptionError(
            f"--http: found {endpoint}, which other machines can reach, so that tokens would cross"
            " the network in plain text; expected an address of loopback behind a proxy with TLS,"
            " or else --insecure-bind"
        )
    asyncio.run(over_http.serve(collector, endpoint, hosts, on_ready))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
