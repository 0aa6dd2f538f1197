"""The command `pathgauge purge`: parses its options, and removes telemetry from a store, with or
without a running collector.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from pathlib import Path

from pathgauge.collector.core.documents.quantities import parse_duration
from pathgauge.collector.service import control_socket
from pathgauge.collector.store import Purged, Selection, StoreError, StoreInUseError, files
from pathgauge.collector.store.sqlite import SqliteStore

_TRACE_ID = re.compile("[0-9a-f]{32}")


class SelectionError(ValueError):
    """The options do not select anything valid; the message is for the operator."""


def select(trace: str | None, scenario: str | None, before: str | None, now: float) -> Selection:
    """Parse the options; `now` in Unix seconds. Raises `SelectionError`."""
    if [trace, scenario, before].count(None) != 2:
        raise SelectionError("expected exactly one of --trace, --scenario and --before")
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
    """Purge the store in `folder`, through its collector if one is running. Raises `StoreError`."""
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
        return store.purge(selection)
    finally:
        store.close()


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
