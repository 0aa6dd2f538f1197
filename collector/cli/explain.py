"""`pathgauge explain`: since when scores are worse or tool calls differ, and what changed."""

from __future__ import annotations

from typing import Annotated

import typer

from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.errors import operator_errors
from pathgauge.collector.cli.options import AsJson, CaFile, StoreConfig, TokenFile, Url


def explain(
    agent: Annotated[str, typer.Argument(help="The agent.")],
    scenario: Annotated[
        str | None, typer.Argument(help="The scenario. Default: all of the agent.")
    ] = None,
    config: StoreConfig = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    metric: Annotated[str | None, typer.Option(help="Only by this metric.")] = None,
    as_json: AsJson = False,
) -> None:
    """Explain how the behavior of an agent changed.

    Shows how much evidence there is for a change, since when, from which mean to which, and which
    tool calls cost more than before. Evidence of N days means: by chance alone, this much evidence
    is reached once in N days. Adjusted evidence allows for the number of series. An alert is raised
    above 365 days, unless the configuration says otherwise. Without a scenario and --metric, it
    also shows whether invocations without a reference call other tools than before: which tools,
    transitions and paths are new or have vanished.

    Reads the store of the configuration, or with --url asks a running collector. The store may be a
    few seconds behind, and five minutes for invocations without a reference.

    Example: `pathgauge explain support refund`
    """
    from rich.console import Console

    from pathgauge.collector.api.queries import DriftQuery
    from pathgauge.collector.cli.output.drift import print_drift
    from pathgauge.collector.cli.output.json_output import json_line
    from pathgauge.collector.cli.queries import query_of
    from pathgauge.collector.cli.result_sources.missing_names import compared_names
    from pathgauge.collector.cli.result_sources.source import source_of

    options = {"agent": agent, "scenario": scenario, "tenant": tenant, "metric": metric}
    query = query_of(DriftQuery, options)
    with operator_errors():
        source = source_of(config, url, token_file, ca_file)
        found = source.drifts(query)
        hint = compared_names(source, query, found)
    if as_json:
        typer.echo(json_line(found.model_dump(mode="json")))
    else:
        print_drift(found, Console())
    print_messages([hint] if hint else [])
