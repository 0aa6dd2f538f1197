"""Commands about the collector itself: run it, demonstrate it, check its configuration, purge its
store or move it into a cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.errors import operator_errors, placed_errors
from pathgauge.collector.cli.options import ConfigFile, InsecureBind


def serve(
    config: ConfigFile = None,
    insecure_bind: InsecureBind = False,
    role: Annotated[
        list[str] | None,
        typer.Option(
            help="What this process does: gateway, scorer or gauge. It needs Kafka and PostgreSQL;"
            " may be repeated. Default: all.",
        ),
    ] = None,
) -> None:
    """Run the collector until SIGTERM.

    It receives OTLP, scores every agent invocation, and serves the scores to Prometheus. SIGHUP
    reloads the configuration; changed reference files are reloaded without a signal.

    Example: `pathgauge serve --config pathgauge.yaml`
    """
    from pathgauge.collector.service import early_signals
    from pathgauge.collector.service.crash_report import report_crashes

    early_signals.hold()
    report_crashes()

    import asyncio

    from pathgauge.collector.service.process_tuning import starting

    with starting():
        from pathgauge.collector import config as configuration
        from pathgauge.collector.cli.checking import check_cluster
        from pathgauge.collector.service import logging
        from pathgauge.collector.service.cluster.roles import roles_of
        from pathgauge.collector.service.memory.limits import read_limits
        from pathgauge.collector.service.memory.saving import save_memory
        from pathgauge.collector.service.printed_lines import HeldOutput, printed_to
        from pathgauge.collector.service.process_end import end_process
        from pathgauge.collector.service.run import run
        from pathgauge.collector.service.service import Service

        save_memory(read_limits())
        with operator_errors():
            with HeldOutput() as held:
                settings = configuration.load(config)
            roles = roles_of(role or (), settings)
            check_cluster(settings, roles)
            logging.configure(settings.logging.level, settings.logging.format)
            held.release(settings.logging.format)
            if config is None:
                _warn_of_unused_file()
            with printed_to(settings.logging.format):
                service = Service(settings, config, insecure_bind=insecure_bind, roles=roles)
    hint = (
        "end the program that uses the port, such as `make run`, or choose another `endpoint` in"
        " the configuration"
    )
    with (
        operator_errors(hint),
        placed_errors(settings.problem),
        printed_to(settings.logging.format),
    ):
        asyncio.run(run(service))
    end_process()


def _warn_of_unused_file() -> None:
    """Other programs read the file of their name without being told to."""
    import structlog

    name = "pathgauge.yaml"
    if Path(name).exists():
        log = structlog.get_logger(__name__)
        log.warning("a configuration file is not used", file=name, hint=f"--config {name} uses it")


def demo(
    port_offset: Annotated[
        int,
        typer.Option(
            min=0,
            max=50_000,
            help="Added to every port; use it when the default ports are in use.",
        ),
    ] = 0,
    regress_after: Annotated[
        float, typer.Option(min=0, help="Seconds until one agent regresses.")
    ] = 30.0,
    repair_after: Annotated[
        float, typer.Option(min=0, help="Seconds from the regression until the repair.")
    ] = 60.0,
) -> None:
    """Run a demo with example agents.

    Use it for a first look at pathgauge. It runs the collector on loopback with agents that export
    real OTLP, and shows a live table of their scores until Ctrl-C. One agent regresses and is
    repaired.

    Example: `pathgauge demo --port-offset 10000`
    """
    import asyncio

    from rich.console import Console

    from pathgauge.collector.cli.demo.session import show
    from pathgauge.collector.service import logging

    logging.configure("warning")
    with operator_errors("choose other ports with --port-offset, such as --port-offset 10000"):
        asyncio.run(show(port_offset, regress_after, repair_after, Console()))


def validate(config: ConfigFile = None, insecure_bind: InsecureBind = False) -> None:
    """Check a configuration without running it.

    Use it in CI, and before a reload. It checks the file and everything that the file names:
    references, scorers, certificates, tokens. All mistakes are listed at once.

    Example: `pathgauge validate --config pathgauge.yaml`
    """
    from pathgauge.collector.cli.checking import check

    with operator_errors():
        settings, active, access = check(config, insecure_bind=insecure_bind)
    print_messages((*active.warnings, *access.warnings))
    names = ", ".join(criterion.name for criterion in active.evaluator.criteria)
    sinks = "".join(f", {name}" for name in settings.exporters.sinks)
    typer.echo(
        f"{config or 'defaults'}: ok, references: {len(active.references)}, criteria:"
        f" {names or 'none'}, exporters: prometheus{sinks}"
    )


def migrate(
    config: ConfigFile = None,
    source: Annotated[Path, typer.Option("--from", help="The folder of the store to move.")] = Path(
        "pathgauge-data"
    ),
) -> None:
    """Move a store on disk into a cluster.

    Stop the collector of the store first. The configuration is that of the cluster: its topics and
    its database must be empty. Results, evidence, what people said and counts, open traces,
    conversations and everything that waits go on where they were.

    Example: `pathgauge migrate --config cluster.yaml --from pathgauge-data`
    """
    from pathgauge.collector import config as configuration
    from pathgauge.collector.cli.checking import check_cluster
    from pathgauge.collector.config.active import resolve
    from pathgauge.collector.core.documents import ConfigError
    from pathgauge.collector.service import logging

    with operator_errors():
        settings = configuration.load(config)
        if settings.kafka is None or settings.postgres is None:
            text = "found no cluster, expected the sections kafka and postgres"
            raise ConfigError([settings.problem((), text)])
        check_cluster(settings)
        from pathgauge.collector.service.migration import migrate as move
        from pathgauge.scorers.matching.wording import counted

        logging.configure("warning")
        references = resolve(settings).references
        moved = move(
            source,
            settings,
            settings.kafka,
            settings.postgres.conninfo,
            lambda invocation: references.multi_turn(invocation) is not None,
        )
    typer.echo(
        f"{source}: moved {counted(moved.results, 'result')} and"
        f" {counted(moved.requests, 'request')}; the folder is not needed any more"
    )


def purge(
    config: ConfigFile = None,
    trace: Annotated[
        str | None, typer.Option(help="Purge this trace, of all tenants: the id in hexadecimal.")
    ] = None,
    scenario: Annotated[
        str | None, typer.Option(help="Purge the traces that have a result of this scenario.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Purge all that is stored of this tenant.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            help="Purge older data: an age such as 7d, or a date such as 2026-11-01 (UTC)."
        ),
    ] = None,
    rewrite: Annotated[
        bool,
        typer.Option(
            "--rewrite",
            help="With PostgreSQL: rewrite the tables, so that their files keep nothing of it."
            " Scorers wait meanwhile. A store on disk needs no rewriting.",
        ),
    ] = False,
) -> None:
    """Remove data from the store for good.

    Use it when telemetry must not be kept, such as personal data that was sent by mistake. It
    removes telemetry and results, whether a collector runs on the store or not, and leaves nothing
    of them in the files; with PostgreSQL, if you add --rewrite. Kafka keeps requests until the
    retention.ms of its topics is over. Counters stay: they hold no content. Give exactly one of
    --trace, --scenario, --tenant and --before.

    Example: `pathgauge purge --config pathgauge.yaml --trace 4bf92f3577b34da6a3ce929d0e0e4736`
    """
    import time

    from pathgauge.collector import config as configuration
    from pathgauge.collector.cli.output.purged import report
    from pathgauge.collector.cli.purge_selection import SelectionError, select
    from pathgauge.collector.core.documents import ConfigError
    from pathgauge.collector.service import logging
    from pathgauge.collector.service.purge import purge_store

    with operator_errors():
        settings = configuration.load(config, with_scorers=False)
        if settings.store is None:
            text = (
                "found memory, expected a store on disk: data in memory is lost when the process"
                " ends"
            )
            raise ConfigError([settings.problem(("store",), text)])
        try:
            selection = select(trace, scenario, tenant, before, time.time())
        except SelectionError as error:
            print_messages([str(error)])
            raise typer.Exit(2) from error
        logging.configure("warning")
        if settings.postgres is None:
            place = str(settings.folder / settings.store.path)
            with placed_errors(settings.problem):
                purged = purge_store(settings.folder / settings.store.path, selection)
        else:
            from pathgauge.collector.store.postgres.purge import purge as purge_database

            place = "postgres"
            since = time.time() - settings.windows.max_age
            conninfo = settings.postgres.conninfo
            purged = purge_database(conninfo, selection, since, rewrite=rewrite)
    typer.echo(f"{place}: {report(purged)}")
    has_name = scenario is not None or tenant is not None
    if has_name and not (purged.results or purged.requests):
        from pathgauge.collector.cli.result_sources.missing_names import missing_in_store

        print_messages(missing_in_store(settings, scenario, tenant))
    if settings.kafka is not None:
        topics = f"{settings.kafka.traces_topic} and {settings.kafka.logs_topic}"
        print_messages(
            [f"Kafka keeps the requests until the retention.ms of the topics {topics} is over"]
        )
    if purged.unfinished is not None and settings.postgres is not None and not rewrite:
        print_messages([purged.unfinished])
    elif purged.unfinished is not None:
        text = (
            f"its bytes may still be in the files ({purged.unfinished}); correct that and purge"
            " again"
        )
        print_messages([text])
        raise typer.Exit(2)
