"""The command `pathgauge purge`: parses its options, and removes telemetry from a store, with or
without a running collector.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pathgauge.collector.core.documents.quantities import parse_duration
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.service import control_socket
from pathgauge.collector.store import (
    Progress,
    Purged,
    Restored,
    Selection,
    StoreError,
    StoreInUseError,
    outbox,
)
from pathgauge.collector.store.outbox import Acknowledged, OutboxReader
from pathgauge.collector.store.resharding import shape as shapes
from pathgauge.collector.store.resharding.shape import Shape
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.store import SqliteStore

_ALL = 1 << 60
_TRACE_ID = re.compile("[0-9a-f]{32}")


class SelectionError(ValueError):
    """The options do not select anything valid; the message is for the operator."""


def select(
    trace: str | None, scenario: str | None, tenant: str | None, before: str | None, now: float
) -> Selection:
    """Parse the options; `now` in Unix seconds. Raises `SelectionError`."""
    if [trace, scenario, tenant, before].count(None) != 3:
        raise SelectionError("expected exactly one of --trace, --scenario, --tenant and --before")
    if trace is not None:
        if not _TRACE_ID.fullmatch(trace.lower()) or trace.strip("0") == "":
            raise SelectionError(
                f"--trace: found {trace!r}, expected the 32 hexadecimal digits of a trace id"
            )
        return Selection(trace_id=trace.lower())
    if scenario is not None:
        if not scenario:
            raise SelectionError("--scenario: found nothing, expected a scenario id")
        return Selection(scenario=scenario)
    if tenant is not None:
        if not tenant:
            raise SelectionError("--tenant: found nothing, expected the name of a tenant")
        return Selection(tenant=tenant)
    return Selection(before=_time(before or "", now))


def _time(text: str, now: float) -> float:
    try:
        return now - parse_duration(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SelectionError(
            f"--before: found {text!r}, expected an age such as 7d or 12h, or a date such as"
            " 2026-11-01 or 2026-11-01T12:00Z"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    at = moment.timestamp()
    if at > now:
        raise SelectionError(f"--before: found {text!r}, expected a time in the past")
    return at


def purge_store(folder: Path, selection: Selection) -> Purged:
    """Purge the store in `folder`, through its collector if one is running, with the stores of its
    scorers. Raises `StoreError`.
    """
    if not (folder / files.DATABASE).exists():
        raise StoreError(
            f"store.path: found no store in {folder}, expected the folder of a collector"
        )
    store = SqliteStore(folder)
    try:
        store.open()
    except StoreInUseError:
        return control_socket.ask(folder, selection)
    store.start(lambda delivery: False, time.monotonic)
    try:
        with closing(files.connect_reader(folder)) as connection:
            shape, published = shapes.in_force(connection), outbox.published(connection)
        if OutboxReader(folder).publications(0, 1):
            raise _unpublished(folder)
        if not shape.workers:
            return store.purge(selection)
        return _purge_scorers(store, folder, shape, published, selection)
    finally:
        store.close()


def _purge_scorers(
    store: SqliteStore, main: Path, shape: Shape, published: Mapping[str, int], selection: Selection
) -> Purged:
    """Purge the stores of scorers too. Only the results, which are in `store`, tell which traces
    some selections mean.
    """
    with ExitStack() as stack:
        scorers: dict[str, SqliteStore] = {}
        restored: dict[str, Restored] = {}
        for name, folder in zip(shape.names(), shape.folders(main), strict=True):
            scorers[name] = stack.enter_context(closing(SqliteStore(folder, part="scorer")))
            restored[name] = scorers[name].open()
            scorers[name].start(lambda delivery: False, time.monotonic)
        for name, scorer in scorers.items():
            acknowledged = _acknowledged(main, name, published.get(name, 0), restored)
            scorer.acknowledge(acknowledged)
            scorer.commit(Progress(restored[name].row, restored[name].at, time.time()))
        held: frozenset[TraceKey] = frozenset().union(*(one.held() for one in scorers.values()))
        selected = store.selected(selection, held)
        removed = [scorer.purge(selection, selected) for scorer in scorers.values()]
        return total([store.purge(selection), *removed])


def _acknowledged(
    main: Path, scorer: str, published: int, restored: Mapping[str, Restored]
) -> Acknowledged:
    """What a scorer has told others, who have stored it. Raises `StoreError` if there is more: what
    is purged would be published later.
    """
    waiting = OutboxReader(main / scorer)
    received = [known.received.get(scorer, 0) for name, known in restored.items() if name != scorer]
    last = waiting.last()
    by_target = {
        number: one.received.get(scorer, 0) for number, one in enumerate(restored.values())
    }
    for turn in waiting.forwarded(0, _ALL):
        reached = min(received, default=0) if turn.target is None else by_target[turn.target]
        if turn.id > reached:
            raise _unpublished(main / scorer)
    if last.publication > published:
        raise _unpublished(main / scorer)
    return last


def _unpublished(folder: Path) -> StoreError:
    return StoreError(
        f"{folder}: found results that are not published yet, expected none: start the collector,"
        " and purge while it runs"
    )


def total(purged: Sequence[Purged]) -> Purged:
    """What several stores have removed together."""
    first, *others = purged
    for one in others:
        first = replace(
            first,
            requests=first.requests + one.requests,
            results=first.results + one.results,
            damaged=first.damaged + one.damaged,
            unfinished=first.unfinished or one.unfinished,
        )
    return first


def report(purged: Purged) -> str:
    """What was removed, as one line for the terminal."""
    counts = (
        (purged.requests, "request", "requests"),
        (purged.results, "result", "results"),
        (purged.damaged, "damaged row or file", "damaged rows and files"),
    )
    parts = [f"{count} {one if count == 1 else many}" for count, one, many in counts if count]
    if not parts:
        return "found nothing to remove"
    return f"removed it from {', '.join(parts)}"
