"""The command `pathgauge mcp`: answers of a running collector for coding assistants."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.errors import operator_errors


def mcp(
    url: Annotated[
        str, typer.Option(help="Address of the collector: its metrics port.")
    ] = "http://127.0.0.1:9464",
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token for the collector. Default: the variable PATHGAUGE_TOKEN.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option(
            help="Certificates in PEM to trust instead of those of the system, for an https URL.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            help=(
                "Serve streamable HTTP at this host:port, such as 127.0.0.1:9465, instead of"
                " standard input and output. Each request brings its own token."
            )
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host name by which clients reach --http, such as a proxy's. Can be repeated."
        ),
    ] = None,
    insecure_bind: Annotated[
        bool,
        typer.Option(
            "--insecure-bind",
            help="Allow --http at an address that other machines can reach, without TLS.",
        ),
    ] = False,
) -> None:
    """Answer questions of coding assistants (MCP).

    An assistant that speaks the Model Context Protocol starts it, and asks a running collector
    which invocations fail and why. All tools only read. Needs the extra `mcp`.

    Example: `pathgauge mcp --url http://127.0.0.1:9464`
    """
    if find_spec("mcp") is None:
        _refuse("found no package mcp, expected it to be installed: pip install 'pathgauge[mcp]'")
    if http is not None and token_file is not None:
        _refuse("found --token-file with --http, where each request brings its own token")

    from pathgauge.collector.api.mcp.collector import Collector, OptionError
    from pathgauge.collector.api.mcp.run import run_http, run_stdio

    with operator_errors():
        try:
            collector = Collector(url, ca_file)
            if http is None:
                run_stdio(collector, token_file)
            else:
                run_http(
                    collector, http, allowed_host or [], _announce, insecure_bind=insecure_bind
                )
        except OptionError as error:
            _refuse(str(error))


def _announce(url: str) -> None:
    print_messages([f"serving MCP at {url}"])


def _refuse(text: str) -> NoReturn:
    print_messages([text])
    raise typer.Exit(2)
