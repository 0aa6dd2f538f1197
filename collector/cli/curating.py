"""Commands that compare references with traffic: `pathgauge curate` proposes them, `pathgauge lint`
checks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathgauge.collector.cli.console import print_messages, refuse_to_replace, write_result
from pathgauge.collector.cli.errors import operator_errors
from pathgauge.collector.cli.options import (
    AsJson,
    CaFile,
    ConfigFile,
    Output,
    TokenFile,
    Url,
    existing,
)

if TYPE_CHECKING:
    from pathgauge.collector.cli.result_sources.observed import Traffic
    from pathgauge.collector.core.curation.grouping import Grouped

TrafficFiles = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Trace files, or directories of trace files, as of `pathgauge score`. Without them,"
        " the store of --config or the collector at --url is read.",
        callback=existing,
    ),
]
Patterns = Annotated[
    list[str] | None,
    typer.Option(
        "--references",
        "-r",
        help="Reference files or patterns, instead of those of the configuration.",
    ),
]
Since = Annotated[
    str, typer.Option(help="From a store: only newer runs, an age such as 2d or a time.")
]
Limit = Annotated[int, typer.Option(min=1, help="From a store: at most this many of the newest.")]
OfTenant = Annotated[
    str | None, typer.Option("--tenant", help="From a store: only runs of this tenant.")
]

INTERRUPTED = 130
"""The exit status after ^C, as that of a shell."""


def curate(
    files: TrafficFiles = None,
    config: ConfigFile = None,
    references: Patterns = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    tenant: OfTenant = None,
    since: Since = "7d",
    limit: Limit = 5_000,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Only this scenario. Can be repeated.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also scenarios that have a reference.")
    ] = False,
    bad_share: Annotated[
        float,
        typer.Option(min=0, max=0.4, help="The share of runs that may be bad: it is not learned."),
    ] = 0.1,
    min_runs: Annotated[
        int, typer.Option(min=3, help="Propose nothing for scenarios with fewer runs.")
    ] = 10,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept all without asking.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the proposals as lines of JSON; ask nothing.")
    ] = False,
    output: Output = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the output file if it exists.")
    ] = False,
) -> None:
    """Propose references from many runs.

    Use it when agents run, but have no references. Runs are grouped by scenario id, else by similar
    input and tools. Values that vary become matchers; steps that vary become optional, unordered or
    alternatives; what few runs do is left out. Each proposal is shown with its evidence, for you to
    accept, edit or skip.

    Exits with 1 when nothing was proposed.

    Example: `pathgauge curate traces/ --output references/proposed.yaml`
    """
    from rich.console import Console

    from pathgauge.collector.cli.output.json_output import json_line
    from pathgauge.collector.cli.output.proposals import print_proposal, proposal_object
    from pathgauge.collector.cli.reviewing import reviewed
    from pathgauge.collector.core.curation.grouping import grouped
    from pathgauge.collector.core.curation.proposal import Options, propose
    from pathgauge.collector.core.curation.written import document

    with operator_errors():
        refuse_to_replace(output, force)
        traffic = _traffic(
            files, config, references, (url, token_file, ca_file), (tenant, since, limit)
        )
        print_messages(traffic.notes)
        found = grouped(traffic.observed, all_scenarios=every)
    groups = [one for one in found.groups if not scenario or one.scenario_id in scenario]
    options = Options(bad_share, min_runs)
    proposals = [one for one in (propose(group, options) for group in groups) if one is not None]
    print_messages(_left_out(found, min_runs))
    print_messages(_without_runs(scenario or (), found))
    if not proposals:
        print_messages(["nothing to propose"])
        raise typer.Exit(1)
    if as_json:
        for one in proposals:
            typer.echo(json_line(proposal_object(one)))
        return
    err = Console(stderr=True)
    texts: Iterable[str] = map(document, proposals)
    if not yes:
        texts = reviewed(proposals, lambda one: print_proposal(one, err))
    with operator_errors():
        _write_accepted(texts, len(proposals), output)


def _write_accepted(texts: Iterable[str], of: int, output: Path | None) -> None:
    """Write the accepted documents, also those before a person stops with ^C."""
    from pathgauge.collector.core.curation.written import documents
    from pathgauge.scorers.matching.wording import counted

    taken: list[str] = []
    try:
        taken.extend(texts)  # keeps what came before an exception
    except KeyboardInterrupt as error:
        typer.echo(err=True)
        raise typer.Exit(INTERRUPTED) from error
    finally:
        if taken:
            _write(documents(taken), output)
        print_messages([f"{len(taken)} of {counted(of, 'proposal')} accepted"])


def _write(text: str, output: Path | None) -> None:
    """The file, or standard output if it cannot be written: a person made it by hand."""
    try:
        write_result(text, output)
    except OSError:
        if output is not None:
            write_result(text, None)
        raise


def _left_out(found: Grouped, min_runs: int) -> Iterator[str]:
    from pathgauge.scorers.matching.wording import counted

    for why, count in sorted(found.left_out.items()):
        yield f"{counted(count, 'invocation')} left out: {why}"
    for group in found.groups:
        runs = len(group.turns[0])
        if runs < min_runs:
            few = counted(runs, "run")
            yield f"scenario {group.scenario_id}: {few}, expected {min_runs} (--min-runs)"


def _without_runs(scenarios: Iterable[str], found: Grouped) -> Iterator[str]:
    from pathgauge.collector.core.documents import did_you_mean

    known = [group.scenario_id for group in found.groups]
    for name in scenarios:
        if name not in known:
            yield f"--scenario: found no usable run of {name!r}{did_you_mean(name, known)}"


def _traffic(
    files: list[Path] | None,
    config: Path | None,
    references: list[str] | None,
    address: tuple[str | None, Path | None, Path | None],
    wanted: tuple[str | None, str, int],
) -> Traffic:
    """The runs of the files, or else those of a collector. No model is asked."""
    from rich.console import Console

    from pathgauge.collector.api.queries import ResultQuery
    from pathgauge.collector.cli.output.progress import shown_progress
    from pathgauge.collector.cli.queries import query_of
    from pathgauge.collector.cli.result_sources.observed import of_files, of_source
    from pathgauge.collector.cli.result_sources.source import source_of
    from pathgauge.collector.config.active import for_gate, resolve
    from pathgauge.collector.config.dialect_tables import dialects_of
    from pathgauge.collector.config.feedback import Feedback
    from pathgauge.collector.offline.replay import replay

    if files and address[0] is not None:
        raise typer.BadParameter("give either files or --url")
    with shown_progress(Console(stderr=True)) as progress:
        if not files:
            tenant, since, limit = wanted
            query = query_of(ResultQuery, {"tenant": tenant, "since": since})
            return of_source(source_of(config, *address), query, limit, progress)
        settings = for_gate(config, references or ())
        active = resolve(settings)
        return of_files(
            replay(
                files,
                active.evaluator,
                active.references,
                settings.scenario.keys,
                progress=progress,
                dialects=dialects_of(settings.dialects),
            ),
            (settings.feedback or Feedback()).rules(),
        )


def lint(
    files: TrafficFiles = None,
    config: ConfigFile = None,
    references: Patterns = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    tenant: OfTenant = None,
    since: Since = "7d",
    limit: Limit = 500,
    min_noticed: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Exit with 1 when criteria notice a smaller share of mutations."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check references against traffic.

    Use it to find references that say nothing: that match no run, expect arguments that are never
    equal, have dead alternatives, or thresholds within the noise. It also spoils good runs in small
    ways, and shows which criteria notice: mutation testing for evaluations. No model is asked.

    Exits with 1 when there is a problem, when less than --min-noticed is noticed, or when nothing
    was checked because there is no run or no reference.

    Example: `pathgauge lint traces/ --config pathgauge.yaml --min-noticed 0.8`
    """
    from rich.console import Console

    from pathgauge.collector.cli.output.json_output import json_line
    from pathgauge.collector.cli.output.lint_report import print_report
    from pathgauge.collector.config.active import for_gate, resolve
    from pathgauge.collector.offline.linting.report import lint as linted

    with operator_errors():
        settings = for_gate(config, references or ())
        active = resolve(settings)
        traffic = _traffic(
            files, config, references, (url, token_file, ca_file), (tenant, since, limit)
        )
        print_messages(traffic.notes)
        report = linted(
            traffic.observed, active.references, active.evaluator, settings.windows.size
        )
    if as_json:
        typer.echo(json_line(report.to_json()))
    else:
        print_report(report, Console())
    violations = list(report.violations(min_noticed))
    print_messages(violations)
    if violations:
        raise typer.Exit(1)
