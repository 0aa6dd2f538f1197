"""Commands about stored results: find those that failed, explain one, export its trace."""

from __future__ import annotations

from collections.abc import Container
from string import hexdigits
from typing import TYPE_CHECKING, Annotated

import typer

from pathgauge.collector.cli.console import print_messages, write_result
from pathgauge.collector.cli.errors import operator_errors
from pathgauge.collector.cli.options import (
    AsJson,
    CaFile,
    Output,
    StoreConfig,
    TokenFile,
    TraceTenant,
    Url,
)

if TYPE_CHECKING:
    from pathgauge.collector.cli.output.listing import Form

results = typer.Typer(
    invoke_without_command=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


def _trace_id(given: str) -> str:
    """In lower case. Lists and chats shorten ids, which finds nothing."""
    trace = given.lower()
    if len(trace) != 32 or set(trace) - set(hexdigits):
        raise typer.BadParameter(
            f"found {given!r}, expected the 32 hexadecimal digits of a trace id"
        )
    return trace


TraceId = Annotated[str, typer.Argument(help="Trace id, in hexadecimal.", callback=_trace_id)]


@results.callback()
def list_results(
    context: typer.Context,
    config: StoreConfig = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    agent: Annotated[str | None, typer.Option(help="Only of this agent.")] = None,
    scenario: Annotated[str | None, typer.Option(help="Only of this scenario.")] = None,
    criterion: Annotated[
        str | None,
        typer.Option(help="Only with this criterion; it has the --verdict and the --reason."),
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(
            help="Only with this verdict: failed, error, passed, informational or not_evaluated."
            " Default: failed."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="With any verdict.")] = False,
    category: Annotated[
        str | None, typer.Option(help="Only failures of this category, such as missing_call.")
    ] = None,
    signature: Annotated[
        str | None, typer.Option(help="Only failures that this line of --clusters describes.")
    ] = None,
    version: Annotated[str | None, typer.Option(help="Only of this agent version.")] = None,
    reason: Annotated[
        str | None, typer.Option(help="Only without a score or a reference for this reason.")
    ] = None,
    flag: Annotated[
        str | None, typer.Option(help="Only with this defect of the telemetry.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    since: Annotated[
        str, typer.Option(help="Only newer: an age such as 2d, or a time such as 2026-11-23.")
    ] = "1h",
    until: Annotated[str | None, typer.Option(help="Only older, in the same form.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="List at most this many.")] = 50,
    clusters: Annotated[
        bool, typer.Option("--clusters", help="Group failures by what failed.")
    ] = False,
    unmatched: Annotated[
        bool, typer.Option("--unmatched", help="List scenario ids without a reference instead.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new results as they arrive, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of text.")] = False,
) -> None:
    """Find the invocations that failed, and why.

    Use it when an alert fires. It lists the invocations that failed in the last hour, the newest
    first. It reads the store of the collector, whether it runs or not, or asks a running one with
    --url.

    Example: `pathgauge results --config pathgauge.yaml --agent refund_agent --clusters`
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    from rich.console import Console

    from pathgauge.collector.api.queries import ResultQuery
    from pathgauge.collector.cli import result_lists
    from pathgauge.collector.cli.result_sources.source import source_of

    if [clusters, unmatched, follow].count(True) > 1:
        raise typer.BadParameter("give at most one of --clusters, --unmatched and --follow")
    if every and verdict is not None:
        raise typer.BadParameter("give at most one of --all and --verdict")
    if unmatched:
        _refuse_filters(context, "--unmatched", {*ResultQuery.model_fields, "every"} - {"limit"})
    if clusters:
        _refuse_filters(context, "--clusters", {"every"})
    names = {
        "agent": agent,
        "scenario": scenario,
        "category": category,
        "signature": signature,
        "tenant": tenant,
        "since": since,
        "until": until,
    }
    more = {"criterion": criterion, "version": version, "reason": reason, "flag": flag}
    with operator_errors():
        lists = result_lists.Lists(
            source_of(config, url, token_file, ca_file), _form(as_json, as_csv), Console()
        )
        if unmatched:
            lists.unmatched(limit)
        elif clusters:
            lists.clusters({**names, "verdict": verdict, **more}, limit)
        else:
            wanted = None if every else verdict or "failed"
            lists.results({**names, "verdict": wanted, **more}, limit, follow=follow)


def _refuse_options(context: typer.Context) -> None:
    """Options before the name of a command would have no effect."""
    if any(_is_given(context, name) for name in context.params):
        command = context.invoked_subcommand
        raise typer.BadParameter(f"give options behind `{command}`, not in front of it")


def _refuse_filters(context: typer.Context, listed: str, filters: Container[str]) -> None:
    """These filters would have no effect on what is listed."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in filters and _is_given(context, name):
            raise typer.BadParameter(f"{listed} cannot be combined with {parameter.opts[0]}")


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether the option was written; it may have a default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _form(as_json: bool, as_csv: bool) -> Form:
    if as_json and as_csv:
        raise typer.BadParameter("give at most one of --json and --csv")
    if as_json:
        return "json"
    return "csv" if as_csv else "text"


@results.command()
def show(
    trace: TraceId,
    span: Annotated[
        str | None,
        typer.Argument(help="Span id of one invocation, instead of all."),
    ] = None,
    config: StoreConfig = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    tenant: TraceTenant = None,
    as_json: AsJson = False,
) -> None:
    """Explain the results of a trace.

    Use it to see why an invocation failed: what the user said, the expected and the actual answer,
    both trajectories side by side, and why each criterion gave its value.

    Example: `pathgauge results show 4bf92f3577b34da6a3ce929d0e0e4736`
    """
    from rich.console import Console

    from pathgauge.collector.cli.output.explained import print_explained
    from pathgauge.collector.cli.output.json_output import json_line
    from pathgauge.collector.cli.result_sources.source import SourceError, source_of

    with operator_errors():
        found = source_of(config, url, token_file, ca_file).explained(trace, span, tenant).results
        if not found:
            raise SourceError(f"trace {trace}: found no result, expected one in the store")
        if as_json:
            for one in found:
                typer.echo(json_line(one.model_dump(mode="json")))
        else:
            print_messages(print_explained(found, Console()))


@results.command()
def export(
    trace: TraceId,
    config: StoreConfig = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    tenant: TraceTenant = None,
    output: Output = None,
) -> None:
    """Write a trace as OTLP/JSON.

    Use it to repeat the scoring of an invocation with other criteria or references, or to make a
    reference of it: `pathgauge score`, `invocations` and `record` read the file. The spans
    themselves are deleted minutes after they were scored. Then the trace is rebuilt from what
    explains its results; standard error says so.

    Example: `pathgauge results export 4bf92f3577b34da6a3ce929d0e0e4736 --output trace.json`
    """
    from pathgauge.collector.cli.result_sources.source import source_of
    from pathgauge.collector.cli.result_sources.traces import described

    with operator_errors():
        found = source_of(config, url, token_file, ca_file).trace(trace, tenant)
        write_result(f"{found.model_dump_json()}\n", output)
    print_messages(described(trace, found))
