"""The folder of a backfill: its store, and whether it can be continued."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.service.backfill import position
from pathgauge.collector.service.backfill.position import Position
from pathgauge.collector.service.components import evidence_policy
from pathgauge.collector.store import Restored, StoreError
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.recent_results import WindowBounds
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.store import SqliteStore

_KEPT = Retention(max_bytes=1 << 50, results_s=math.inf)
"""Everything that is asked for is kept. Retention begins when a collector runs on the store."""
_PATIENCE_S = 10.0
_DECISIVE = {
    *("assembly", "conversations", "criteria", "dialects", "drift", "evidence", "prices"),
    *("redaction", "scenario", "sessions", "shadow", "windows"),
}
"""The sections of the configuration that decide what is stored."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked for. Times in Unix nanoseconds, of whole microseconds."""

    since: int
    until: int
    folder: Path
    tenant: str = ""
    step: float = 60.0
    """Seconds between two samples of a series."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Added to every series."""


@contextmanager
def opened_store(folder: Path, config: Config, clock: Callable[[], float]) -> Iterator[SqliteStore]:
    """The store, to be opened by the caller, and closed at the end. Raises `StoreError` for one of
    an earlier version: to open it would bring it up to date, whosever it is.
    """
    if files.identity(folder) is not None and not _is_new(folder):
        with reading(folder, _PATIENCE_S):
            pass  # it has this version
    store = SqliteStore(
        folder,
        _KEPT,
        WindowBounds(config.windows.max_age),
        evidence=evidence_policy(config),
        clock=clock,
    )
    try:
        yield store
    finally:
        store.close()


def _is_new(folder: Path) -> bool:
    """Whether a process was killed before it had made the tables."""
    with closing(files.connect_reader(folder)) as connection:
        [version] = connection.execute("PRAGMA user_version").fetchone()
    return bool(version == 0)


def continued(
    restored: Restored, source: str, config: Config, setup: ActiveConfig, options: Options
) -> Position:
    """Where to continue. Raises `StoreError` if a collector has written the store, or a backfill of
    something else.
    """
    found = position.stored(restored.counts)
    settings = _fingerprint(config, setup, options)
    if found is None and (restored.counts or restored.requests or restored.at or restored.turns):
        text = "found the store of a collector, expected a new folder, or that of a backfill"
        raise StoreError(f"{options.folder}: {text}")
    if found is None:
        return Position(source, settings, options.since, options.since, options.until)
    if found.source != source:
        text = f"found a backfill from {found.source}, expected one from {source}"
        raise StoreError(f"{options.folder}: {text}: choose another folder")
    if found.settings != settings:
        text = "found a backfill with other criteria, references or options, expected the same"
        raise StoreError(f"{options.folder}: {text}: choose another folder")
    return found


def _fingerprint(config: Config, setup: ActiveConfig, options: Options) -> str:
    """Of everything that must not change while a backfill goes on."""
    written = config.model_dump_json(include=_DECISIVE, exclude={"redaction": {"salt"}})
    references = sorted((one.scenario_id, one.version or "") for one in setup.references)
    judge = config.judge and (config.judge.model, config.judge.sample_rate, config.judge.scenarios)
    shadow = setup.shadow and setup.shadow.setup
    takes_feedback = config.feedback is not None
    labels = sorted(options.labels.items())
    chosen = options.tenant, options.step, labels, judge, shadow, takes_feedback
    parts = hashlib.sha256()
    for part in (written, repr(references), repr(chosen)):
        parts.update(part.encode())
    return parts.hexdigest()[:16]
