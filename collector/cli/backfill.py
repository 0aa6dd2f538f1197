"""`pathgauge backfill`: scores the past, so that dashboards and baselines begin with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.errors import operator_errors, placed_errors
from pathgauge.collector.cli.options import ConfigFile

if TYPE_CHECKING:
    from pathgauge.collector.config import Config
    from pathgauge.collector.config.active import ActiveConfig
    from pathgauge.collector.core.documents import KeyPath, Problem
    from pathgauge.collector.offline.judge_check.cost import CheckCost
    from pathgauge.collector.service.backfill.run import Backfill, Report

_LABEL = re.compile(r"((?!__)[a-zA-Z_]\w*)=(.*)", re.ASCII)


def backfill(
    source: Annotated[
        str,
        typer.Argument(
            help="Where the traces are: file://PATTERN, jaeger://HOST:PORT, tempo://HOST:PORT or"
            " clickhouse://HOST:PORT/DATABASE."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The folder for the store and the file of series: a new one, or that of a"
            " backfill that was stopped.",
        ),
    ],
    config: ConfigFile = None,
    since: Annotated[
        str,
        typer.Option(
            help="Traces that began after: an age such as 7d, or a time such as 2026-11-23."
        ),
    ] = "7d",
    until: Annotated[
        str | None,
        typer.Option(help="Traces that began before, in the same form. Default, and latest: now."),
    ] = None,
    tenant: Annotated[
        str, typer.Option(help="The tenant of the traces, if the configuration has tenants.")
    ] = "",
    step: Annotated[
        str, typer.Option(help="Time between two samples of a series, at most 5m.")
    ] = "1m",
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="A label for all series, such as job=pathgauge: those that Prometheus adds when it"
            " scrapes. Can be repeated."
        ),
    ] = None,
    https: Annotated[bool, typer.Option("--https", help="Ask the server over HTTPS.")] = False,
    ca_file: Annotated[
        Path | None,
        typer.Option(
            help="Certificates that are trusted with --https, instead of those of the system.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    without_judges: Annotated[
        bool,
        typer.Option(
            "--without-judges",
            help="Ask no judge. Criteria that ask a model have no scores, with the reason"
            " judge_not_asked.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Accept the estimated cost of judges.")
    ] = False,
) -> None:
    """Score past traces.

    Use it once, before a collector starts or beside it, so that dashboards and baselines start
    with a history. The pipeline of a collector runs over the traces at their original times. It
    writes a store, which `pathgauge results` and a new collector can read, and an OpenMetrics file
    for `promtool tsdb create-blocks-from openmetrics`. A running collector is not touched.

    If judges are configured, it first counts what they would be asked, and asks whether to go on.
    If it is stopped, repeat the command: it goes on where it was.

    Example: `pathgauge backfill tempo://localhost:3200 --since 7d --config pathgauge.yaml -o past`
    """
    import time

    from rich.console import Console

    from pathgauge.collector import config as configuration
    from pathgauge.collector.cli.output.backfill import report_lines
    from pathgauge.collector.cli.output.progress import shown_progress
    from pathgauge.collector.config.active import resolve
    from pathgauge.collector.service.backfill.folder import Options
    from pathgauge.collector.service.backfill.run import Backfill
    from pathgauge.collector.service.backfill.sources.address import open_source

    err, now = Console(stderr=True), time.time()
    options = Options(
        _time("since", since, now),
        _time("until", until, now),
        output,
        tenant,
        _step(step),
        _labels(label or ()),
    )
    if options.since >= options.until:
        raise typer.BadParameter("--since: found a time after --until, expected one before")
    with operator_errors(), placed_errors(_of_output):
        settings = configuration.load(config)
        declined = without_judges and settings.judge is not None
        if declined:
            settings = settings.with_changes({"judge": None})
        active = resolve(settings)
        print_messages([*active.warnings, *_unasked(settings, active)])
        _check_tenant(settings, tenant)
        output.mkdir(parents=True, exist_ok=True)
        with shown_progress(err) as progress:
            opened = open_source(
                source, output / "spool.db", secure=https, ca_file=ca_file, progress=progress
            )
        try:
            with shown_progress(err) as progress:
                run = Backfill(settings, active, opened, options, progress)
                estimate = run.estimate()
            if estimate is not None and estimate.requests:
                print_messages([str(estimate)])
                if not yes:
                    _confirm()
            with shown_progress(err) as progress:
                run = Backfill(settings, active, opened, options, progress)
                lines = report_lines(*_run(run, settings, active, declined=declined), output)
        finally:
            opened.close()
    for line in lines:
        typer.echo(line)


def _run(
    run: Backfill, settings: Config, active: ActiveConfig, *, declined: bool
) -> tuple[Report, CheckCost | None]:
    if settings.judge is None:
        return run.run(declined=declined), None
    from pathgauge.collector.offline.judge_check.cost import CheckCost
    from pathgauge.collector.offline.judges import judges_of

    cost = CheckCost()
    with judges_of(settings.judge, settings.folder, active, observer=cost) as judges:
        return run.run(judges), cost


def _of_output(_: KeyPath, text: str) -> Problem:
    """The folder of the store is that of the option, whatever the configuration says."""
    from pathgauge.collector.core.documents import Problem

    return Problem("", None, ("--output",), text)


def _unasked(settings: Config, active: ActiveConfig) -> list[str]:
    """What a person would expect who has configured judges in shadow."""
    from pathgauge.collector.config.shadowing import judges_in

    if settings.judge is None or not (names := judges_in(active.shadow)):
        return []
    return [
        "shadow: a backfill does not ask judges in shadow, so these criteria have no scores there:"
        f" {', '.join(names)}"
    ]


def _confirm() -> None:
    """Ask whether to spend so much. Raises `typer.Exit` unless a person agrees."""
    import sys

    if not sys.stdin.isatty():
        print_messages(["found no terminal to ask, expected --yes, or --without-judges"])
        raise typer.Exit(2)
    if not typer.confirm("Go on?", err=True):
        raise typer.Exit(2)


def _check_tenant(settings: Config, tenant: str) -> None:
    """Raises `ConfigError` unless the configuration has this tenant."""
    from pathgauge.collector.core.documents import ConfigError, Problem, did_you_mean

    known = sorted(settings.auth.tenants if settings.auth is not None else ())
    if tenant in (known or [""]):
        return
    expected = "expected none: the configuration has no tenants"
    if known:
        expected = f"expected one of {', '.join(known)}{did_you_mean(tenant, known)}"
    raise ConfigError([Problem("", None, ("--tenant",), f"found {tenant!r}, {expected}")])


def _time(option: str, text: str | None, now: float) -> int:
    """Unix nanoseconds, of whole microseconds, from 1970 to now."""
    from pathgauge.collector.api.queries import parse_time

    try:
        seconds = now if text is None else parse_time(text)
    except ValueError as error:
        raise typer.BadParameter(f"--{option}: found {text!r}, expected {error}") from error
    return int(min(max(0.0, seconds), now) * 1e6) * 1000


def _step(text: str) -> float:
    from pathgauge.collector.cli.queries import seconds_of

    seconds = seconds_of("step", text)
    if not 1 <= seconds <= 300:
        raise typer.BadParameter(f"--step: found {text}, expected 1s to 5m")
    return seconds


def _labels(texts: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for name, value in map(_label, texts):
        if name in labels:
            raise typer.BadParameter(f"--label: found {name} twice, expected it once")
        labels[name] = value
    return labels


def _label(text: str) -> tuple[str, str]:
    found = _LABEL.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"--label: found {text!r}, expected NAME=VALUE")
    return found[1], found[2]
