"""The lists of `pathgauge results`: asks a source, and prints the answers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

import typer
from rich.console import Console

from pathgauge.collector.api.queries import ClusterQuery, ResultQuery
from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.output.listing import Form, Listing
from pathgauge.collector.cli.output.results import (
    CLUSTER_HEADINGS,
    RESULT_HEADINGS,
    UNMATCHED_HEADINGS,
    cluster_entry,
    result_entry,
    unmatched_entry,
)
from pathgauge.collector.cli.queries import query_of
from pathgauge.collector.cli.result_sources.following import Following
from pathgauge.collector.cli.result_sources.missing_names import without_results
from pathgauge.collector.cli.result_sources.source import ResultSource, newest
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.queries.results import MAX_LIMIT
from pathgauge.scorers.matching.wording import counted, plural

POLL_S = 1.0
"""The time between two looks for new results."""

_MISSPELT: tuple[Literal["agent", "scenario"], ...] = ("agent", "scenario")
_Filters = Mapping[str, str | None]


class Lists:
    """Prints what is asked for."""

    def __init__(self, source: ResultSource, form: Form, out: Console) -> None:
        self._source = source
        self._form = form
        self._out = out

    def results(self, filters: _Filters, limit: int, *, follow: bool) -> None:
        """Print results, or new ones as they arrive. Raises `StoreError`."""
        listing = Listing(RESULT_HEADINGS, self._form, self._out)
        query = query_of(ResultQuery, filters, limit=min(limit + 1, MAX_LIMIT))
        if follow:
            self._follow(query, listing)
            return
        found = list(newest(self._source, query, limit + 1))
        listing.print(map(result_entry, found[:limit]))
        if not found:
            any_verdict = "" if filters["verdict"] is None else "--all accepts any verdict, "
            print_messages([f"no result matches; {any_verdict}--since finds older ones"])
            self._print_unknown(filters)
        elif len(found) > limit:
            print_messages([f"there are more than these {limit}: --limit lists more"])

    def clusters(self, filters: _Filters, limit: int) -> None:
        """Print failures in groups. Raises `StoreError`."""
        unused = [name for name in filters if name not in ClusterQuery.model_fields]
        if given := [name for name in unused if filters[name] is not None]:
            raise typer.BadParameter(f"--clusters cannot be combined with --{given[0]}")
        wanted = {name: value for name, value in filters.items() if name not in unused}
        found = self._source.clusters(query_of(ClusterQuery, wanted))
        shown = found.clusters[:limit]
        Listing(CLUSTER_HEADINGS, self._form, self._out).print(map(cluster_entry, shown))
        if others := found.failures - sum(one.failures for one in shown):
            print_messages([f"{counted(others, 'failure')} in smaller groups"])
        if not found.complete and not found.failures:
            print_messages(["the search ended before it found a failure; a --scenario is faster"])
        elif not found.complete:
            print_messages(
                [f"grouped only the newest {found.failures:,} {plural(found.failures, 'failure')}"]
            )
        elif not found.failures:
            print_messages(["no failure matches; --since finds older ones"])
            self._print_unknown(filters)

    def _print_unknown(self, filters: _Filters) -> None:
        """The agents or scenarios that have results, if the wanted one has none at all."""
        for kind in _MISSPELT:
            name = filters[kind]
            hint = name and without_results(self._source, kind, name, filters["tenant"])
            print_messages([hint] if hint else [])

    def unmatched(self, limit: int) -> None:
        """Print scenario ids without a reference. Raises `StoreError`."""
        found = self._source.unmatched()
        shown = found.scenarios[:limit]
        Listing(UNMATCHED_HEADINGS, self._form, self._out).print(map(unmatched_entry, shown))
        others = found.further_invocations + sum(
            one.invocations for one in found.scenarios[len(shown) :]
        )
        if others:
            print_messages([f"{counted(others, 'invocation')} with further scenario ids"])
        if not found.scenarios:
            print_messages(
                [
                    "found no scenario id without a reference; --url asks for those since the start"
                    " or the last reload, --config for all in the store"
                ]
            )

    def _follow(self, query: ResultQuery, listing: Listing) -> None:
        reported = ""
        with suppress(KeyboardInterrupt):
            following = Following(self._source, query)
            listing.print_headings()
            while True:
                try:
                    for result in following.new():
                        listing.print_one(result_entry(result))
                except StoreError as error:
                    if following.is_over(error):
                        raise
                    if str(error) != reported:
                        print_messages([str(error)])
                    reported = str(error)
                time.sleep(POLL_S)
