"""Applies what scorers have left whose stores were replaced, because their number has changed."""

from __future__ import annotations

from pathlib import Path

from pathgauge.collector.service.publications import Arrived, Publications
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.outbox import Acknowledged
from pathgauge.collector.store.resharding import left_publications
from pathgauge.collector.store.sqlite.store import SqliteStore

_SCORER = ""
"""Their rows are in the main store, and deleted in the transaction of the results."""
_MAX_BYTES = 4 << 20


def apply_left_publications(folder: Path, store: SqliteStore, publications: Publications) -> None:
    """To be called before anything else is published. Raises `StoreError`."""
    row = 0
    while left := left_publications(folder, row, _MAX_BYTES):
        for publication in left:
            publications.take(Arrived(_SCORER, publication.id, publication.body))
        if publications.refused is not None:
            raise StoreError(f"{folder}: {publications.refused}")
        row = left[-1].id
        store.acknowledge(Acknowledged(publication=row))
        if publications.commit(lambda: False) is None:
            raise StoreError(f"{folder}: results that were left by scorers cannot be stored")
    store.acknowledge(Acknowledged())
