"""Commands that read a store whose schema is another one say which version can read it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.schema import MIGRATIONS
from support.evaluated import opened


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (len(MIGRATIONS) + 1, ": a later version of pathgauge wrote it, and can read it"),
        (len(MIGRATIONS) - 1, "; a start of the collector brings it up to date"),
    ],
)
def test_a_store_of_another_version_is_refused_with_what_helps(
    version: int, message: str, tmp_path: Path
) -> None:
    with opened(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "pathgauge.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError) as raised, reading(tmp_path):
        pass
    found = f"found schema version {version}, expected {len(MIGRATIONS)}"
    assert found in str(raised.value)
    assert str(raised.value).endswith(message)
