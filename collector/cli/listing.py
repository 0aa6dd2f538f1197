"""Commands that list or generate: the scorer catalogue, the rules, the dashboards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathgauge.collector.cli.console import write_result
from pathgauge.collector.cli.errors import operator_errors
from pathgauge.collector.cli.options import AsJson, Output


def scorers(as_json: AsJson = False) -> None:
    """List the installed scorers.

    Use it to choose a criterion: it shows the range, the direction and the options of each scorer,
    those of plug-ins included.

    Example: `pathgauge scorers --json`
    """
    from dataclasses import asdict

    from pathgauge.collector.cli.output.json_output import json_line
    from pathgauge.collector.cli.output.scorer_catalogue import catalogue

    with operator_errors():
        entries = list(catalogue())
    if as_json:
        typer.echo(json_line([asdict(entry) for entry in entries]))
        return

    from rich.console import Console

    from pathgauge.collector.cli.output.scorer_list import print_catalogue

    print_catalogue(entries, Console())


def rules(
    output: Output = None,
    job: Annotated[
        str, typer.Option(help="Name of the Prometheus job that scrapes the collectors.")
    ] = "pathgauge",
    severity: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Change the severity of an alert (PathgaugeScoreDrift=info) or rename a"
                " severity (critical=page). Can be repeated."
            )
        ),
    ] = None,
    for_: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            help=(
                "How long a condition must hold before an alert fires: for all alerts (5m) or for"
                " one (PathgaugeStoreNotOk=1m). Can be repeated."
            ),
        ),
    ] = None,
    keep_firing_for: Annotated[
        str,
        typer.Option(help="How long alerts about scores keep firing after their condition ends."),
    ] = "10m",
    interval: Annotated[str, typer.Option(help="Evaluation interval of the rules.")] = "30s",
    min_samples: Annotated[
        int, typer.Option(min=1, help="Ignore means of fewer scores or invocations than this.")
    ] = 20,
    sigmas: Annotated[
        float,
        typer.Option(
            min=0,
            help="An alert fires when a mean is off by at least this many standard errors.",
        ),
    ] = 4.0,
    runbook_url: Annotated[
        str, typer.Option(help="URL under which the pages of docs/runbooks are published.")
    ] = "https://github.com/pathgauge/pathgauge/blob/main/docs/runbooks",
    dashboard_url: Annotated[
        str | None, typer.Option(help="URL of a dashboard that every alert links to.")
    ] = None,
    results_url: Annotated[
        str,
        typer.Option(
            help="URL at which browsers reach the pages of the collector. Alerts about scores link"
            " to the invocations behind them."
        ),
    ] = "http://localhost:9464",
) -> None:
    """Write the rules for Prometheus.

    Use it once, and again after an upgrade. There are recording and alerting rules. They do not
    depend on the configuration: the collector exports thresholds, objectives and intervals as
    metrics, and the rules read those.

    Example: `pathgauge rules --severity critical=page --runbook-url https://wiki.example/pathgauge
    --output rules.yml`
    """
    from pathgauge.collector.sinks.prometheus.rules import Choices, choose, to_yaml

    with operator_errors():
        base = Choices(
            job=job,
            runbook_url=runbook_url,
            dashboard_url=dashboard_url,
            results_url=results_url,
            interval=interval,
            keep_firing_for=keep_firing_for,
            min_samples=min_samples,
            sigmas=sigmas,
        )
        choices = choose(base, severity or (), for_ or ())
        write_result(to_yaml(choices), output)


def dashboards(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write to. It is created if missing.")
    ] = Path("dashboards"),
) -> None:
    """Write the Grafana dashboards.

    Use it once, and again after an upgrade. Import the files in Grafana, or put them into a folder
    that Grafana reads dashboards from.

    Example: `pathgauge dashboards --output /etc/grafana/dashboards`
    """
    from importlib.resources import files

    with operator_errors():
        output.mkdir(parents=True, exist_ok=True)
        for source in sorted(files("pathgauge.dashboards").iterdir(), key=lambda file: file.name):
            target = output / source.name
            target.write_bytes(source.read_bytes())
            typer.echo(str(target))
