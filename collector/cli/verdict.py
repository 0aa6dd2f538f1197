"""`pathgauge verdict`: whether a version of an agent may be released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.errors import operator_errors
from pathgauge.collector.cli.options import AsJson, CaFile, StoreConfig, TokenFile, Url

if TYPE_CHECKING:
    from pathgauge.collector.api.queries import ShadowQuery, VerdictQuery
    from pathgauge.collector.api.release_models import ReleaseVerdict
    from pathgauge.collector.cli.result_sources.source import ResultSource
    from pathgauge.collector.core.verdicts.comparison import Outcome

UNDECIDED = 3
"""The exit status; 1 is worse, 2 a mistake of the operator."""


def verdict(
    agent: Annotated[str, typer.Option(help="The agent.")],
    version: Annotated[str | None, typer.Option(help="The version that is to be released.")] = None,
    against: Annotated[
        str | None, typer.Option(help="The version that it is compared with.")
    ] = None,
    shadow: Annotated[
        bool,
        typer.Option(
            "--shadow",
            help="Instead of two versions, compare the criteria and references of the section"
            " `shadow` with the active ones.",
        ),
    ] = False,
    config: StoreConfig = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    scenario: Annotated[str | None, typer.Option(help="Only in this scenario.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Only by this metric. Can be repeated. Default: the criteria with a threshold."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            help="Only newer results: an age such as 2d, or a time such as 2026-11-23."
            " Default: all in the store."
        ),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only older, in the same form.")] = None,
    confidence: Annotated[
        float,
        typer.Option(min=0.5, max=0.9999, help="Probability that all intervals always hold."),
    ] = 0.95,
    margin: Annotated[
        float,
        typer.Option(min=0, max=1, help="Not worse: certainly worse by less than this."),
    ] = 0.05,
    min_effect: Annotated[
        float,
        typer.Option(min=0, max=1, help="Better and worse: certainly by more than this."),
    ] = 0.0,
    wait: Annotated[
        str | None,
        typer.Option(help="Ask again until there is a verdict, at most for a time such as 30m."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two versions of an agent.

    Use it in a pipeline that deploys a version to some of the users: is it better, not worse, or
    worse than the other one? Results are compared within each scenario. It may be asked as often
    as you like: its intervals hold at all times of asking together.

    With --shadow, the scores in shadow are compared with the active scores of the same invocations:
    is it safe to switch to the other criteria or references?

    Exits with 0 when the version is better or not worse. Exits with 1 when it is worse, and with 3
    while it is undecided. Exits with 2 when an option is wrong or the results cannot be read, and
    with --wait when after a minute no result of the agent is stored, but of others.

    Example: `pathgauge verdict --agent support --version 1.5 --against 1.4 --wait 30m`
    """
    from functools import partial

    from rich.console import Console

    from pathgauge.collector.api.queries import ShadowQuery, VerdictQuery
    from pathgauge.collector.cli.output.json_output import json_line
    from pathgauge.collector.cli.output.release import print_release
    from pathgauge.collector.cli.queries import query_of, seconds_of
    from pathgauge.collector.cli.result_sources.missing_names import known_versions, unknown_agent
    from pathgauge.collector.cli.result_sources.source import source_of
    from pathgauge.collector.cli.result_sources.waiting import when_decided

    if shadow in (version is not None, against is not None):
        expected = "expected --version and --against, or --shadow alone"
        raise typer.BadParameter(f"found {_given(version, against, shadow=shadow)}, {expected}")
    options: dict[str, str | list[str] | None] = {
        "agent": agent,
        "tenant": tenant,
        "scenario": scenario,
        "metric": metric,
        "since": since,
        "until": until,
    }
    terms = {"confidence": confidence, "margin": margin, "min_effect": min_effect}
    query: ShadowQuery | VerdictQuery
    if shadow:
        query = query_of(ShadowQuery, options, **terms)
    else:
        query = query_of(VerdictQuery, {**options, "version": version, "against": against}, **terms)
    patience = 0.0 if wait is None else seconds_of("wait", wait)
    with operator_errors():
        source = source_of(config, url, token_file, ca_file, with_scorers=True)
        misspelt = partial(unknown_agent, source, query)
        found = when_decided(partial(_ask, source, query), patience, misspelt=misspelt)
        hint = misspelt(found) or known_versions(source, query, found)
    if as_json:
        typer.echo(json_line(found.model_dump(mode="json")))
    else:
        print_release(found, Console(), shadow=shadow)
    print_messages([hint] if hint else [])
    raise typer.Exit(_status(found.verdict))


def _ask(source: ResultSource, query: ShadowQuery | VerdictQuery) -> ReleaseVerdict:
    from pathgauge.collector.api.queries import ShadowQuery

    if isinstance(query, ShadowQuery):
        return source.shadow_verdict(query)
    return source.verdict(query)


def _given(version: str | None, against: str | None, *, shadow: bool) -> str:
    given = {"--version": version is not None, "--against": against is not None, "--shadow": shadow}
    return " and ".join(name for name, is_given in given.items() if is_given) or "no version"


def _status(outcome: Outcome) -> int:
    match outcome:
        case "worse":
            return 1
        case "undecided":
            return UNDECIDED
    return 0
