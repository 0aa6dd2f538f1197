"""Commands about the collector: it is run, shown at work, checked, and made to forget."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from pathgauge.collector import config as configuration
from pathgauge.collector.cli.shared import ConfigFile, InsecureBind, note, operator_errors
from pathgauge.collector.core.documents import ConfigError


def serve(config: ConfigFile = None, insecure_bind: InsecureBind = False) -> None:
    """Receive OTLP, score every agent invocation, and serve the scores to Prometheus, until
    SIGTERM.

    SIGHUP reads the configuration again; changed reference files are noticed by themselves.

    Example: `pathgauge serve --config pathgauge.yaml`
    """
    from pathgauge.collector.service import logging
    from pathgauge.collector.service.service import Service, run

    with operator_errors():
        settings = configuration.load(config)
        logging.configure(settings.logging.level, settings.logging.format)
        asyncio.run(run(Service(settings, config, insecure_bind=insecure_bind)))


def demo(
    port_offset: Annotated[
        int,
        typer.Option(
            min=0, max=50_000, help="Added to every port, where the usual ones are taken."
        ),
    ] = 0,
    regress_after: Annotated[
        float, typer.Option(min=0, help="Seconds until one agent regresses.")
    ] = 30.0,
    repair_after: Annotated[
        float, typer.Option(min=0, help="Seconds from then until it is repaired.")
    ] = 60.0,
) -> None:
    """Run the collector on loopback with example agents that really export OTLP, and show their
    scores, until Ctrl-C.

    Example: `pathgauge demo --port-offset 10000`
    """
    from pathgauge.collector.cli.demo.session import show
    from pathgauge.collector.service import logging

    logging.configure("warning")
    with operator_errors(
        when_in_use="take other ports with --port-offset, such as --port-offset 10000"
    ):
        asyncio.run(show(port_offset, regress_after, repair_after, Console()))


def validate(config: ConfigFile = None, insecure_bind: InsecureBind = False) -> None:
    """Check a configuration and everything that it names, without running it.

    Example: `pathgauge validate --config pathgauge.yaml`
    """
    from pathgauge.collector.config.active import resolve
    from pathgauge.collector.receivers.auth.access import load_access
    from pathgauge.collector.sinks.otlp_events.exporter import build_exporter

    with operator_errors():
        settings = configuration.load(config)
        setup = resolve(settings)
        access = load_access(settings, insecure_bind=insecure_bind)
        if settings.exporters.otlp is not None:
            build_exporter(settings, settings.exporters.otlp)
    note((*setup.warnings, *access.warnings))
    names = ", ".join(criterion.name for criterion in setup.evaluator.criteria)
    typer.echo(
        f"{config or 'defaults'}: ok, {len(setup.references)} references, criteria:"
        f" {names or 'none'}"
    )


def purge(
    config: ConfigFile = None,
    trace: Annotated[
        str | None, typer.Option(help="A trace, by its id in hexadecimal digits; of all tenants.")
    ] = None,
    scenario: Annotated[
        str | None, typer.Option(help="The traces that have a result of this scenario.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(help="What is older: an age such as 7d, or a date such as 2026-11-01 (UTC)."),
    ] = None,
) -> None:
    """Remove telemetry and results from the store for good, whether a collector runs on it or not.

    Nothing of it stays in the files of the store. Counters stay, they hold no content.

    Example: `pathgauge purge --config pathgauge.yaml --trace 4bf92f3577b34da6a3ce929d0e0e4736`
    """
    import time

    from pathgauge.collector.service import logging
    from pathgauge.collector.service.purge import SelectionError, erase, report, select

    with operator_errors():
        settings = configuration.load(config)
        if settings.store is None:
            text = "found memory, expected a store on disk: what is in memory ends with the process"
            raise ConfigError([settings.problem(("store",), text)])
        try:
            selection = select(trace, scenario, before, time.time())
        except SelectionError as error:
            note([str(error)])
            raise typer.Exit(2) from error
        logging.configure("warning")
        folder = settings.folder / settings.store.path
        purged = erase(folder, selection)
    typer.echo(f"{folder}: {report(purged)}")
    if purged.unfinished is not None:
        note(
            [
                f"its bytes may still be in the files ({purged.unfinished}); purge again when that"
                " is mended"
            ]
        )
        raise typer.Exit(2)
