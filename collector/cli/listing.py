"""Commands that write down what there is: scorers, and rules for Prometheus."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from pathgauge.collector.cli.shared import AsJson, Output, operator_errors, write


def scorers(as_json: AsJson = False) -> None:
    """List all scorers with their options.

    Example: `pathgauge scorers --json`
    """
    from dataclasses import asdict

    from pathgauge.collector.cli.output.json_output import json_line
    from pathgauge.collector.cli.output.report import print_catalogue
    from pathgauge.collector.cli.output.scorer_catalogue import catalogue

    entries = list(catalogue())
    if as_json:
        typer.echo(json_line([asdict(entry) for entry in entries]))
    else:
        print_catalogue(entries, Console())


def rules(
    output: Output = None,
    job: Annotated[
        str, typer.Option(help="The job under which Prometheus scrapes the collectors.")
    ] = "pathgauge",
    severity: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Another severity, of an alert or in place of one: PathgaugeScoreRegression=info,"
                " critical=page."
            )
        ),
    ] = None,
    for_: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            help=(
                "How long something must be true: of all alerts (5m), or of one"
                " (PathgaugeStoreNotOk=1m)."
            ),
        ),
    ] = None,
    keep_firing_for: Annotated[
        str,
        typer.Option(
            help="How long alerts about scores go on when what they say ceases to be true."
        ),
    ] = "10m",
    interval: Annotated[str, typer.Option(help="How often the rules are evaluated.")] = "30s",
    min_samples: Annotated[
        int, typer.Option(min=1, help="Fewer scores or invocations than these say nothing.")
    ] = 20,
    sigmas: Annotated[
        float,
        typer.Option(
            min=0, help="By how many standard errors a mean must be off before that is no chance."
        ),
    ] = 4.0,
    min_drop: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="A smaller fall, on a scale from 0 to 1, is no regression."
        ),
    ] = 0.05,
    runbook_url: Annotated[
        str, typer.Option(help="Where the pages of docs/runbooks are published.")
    ] = "docs/runbooks",
    dashboard_url: Annotated[
        str | None, typer.Option(help="A dashboard that every alert links to.")
    ] = None,
) -> None:
    """Write the recording and alerting rules for Prometheus. One file serves every configuration.

    Example: `pathgauge rules --severity critical=page --runbook-url https://wiki.example/pathgauge
    --output rules.yml`
    """
    from pathgauge.collector.sinks.prometheus.rules import Choices, choose, to_yaml

    with operator_errors():
        chosen = choose(
            Choices(
                job,
                runbook_url,
                dashboard_url,
                interval,
                keep_firing_for,
                min_samples,
                sigmas,
                min_drop,
            ),
            severity or (),
            for_ or (),
        )
        write(to_yaml(chosen), output)
