"""After a downgrade, what a later version of pathgauge has stored about open work is taken up,
without what this version does not know.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from pathgauge.collector.core.evaluations.invocation_json import to_json
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.shadow_result import AwaitedShadow
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.pipeline_events import Changes
from pathgauge.collector.store import Progress, pending_judgments, turns
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sqlite.files import DATABASE
from pathgauge.collector.store.sqlite.store import SqliteStore
from support.evaluated import WALL, evaluation, opened

ONE = evaluation("a")
INVOCATION = replace(ONE.invocation, conversation_id="chat", flags=frozenset({"truncated"}))
TURN = StoredTurn(INVOCATION, 1.0, None, 3, "idle", held=True)
PENDING = PendingJudgment(
    ONE.key,
    0,
    to_json(INVOCATION),
    0,
    "root_ended",
    first=True,
    unscored=False,
    shadow=AwaitedShadow("setup", True, {"trajectory": "passed"}),
    uncompared=(("trajectory", "passed"),),
)


def written_later(folder: Path, table: str, columns: str, place: int, more: dict[str, Any]) -> None:
    """Add fields, and a flag if there are flags, to the JSON in a column."""
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        [row] = database.execute(f"SELECT {columns} FROM {table}").fetchall()
        known = orjson.loads(row[place])
        written = list(row)
        if "flags" in known:
            known["flags"].append("later")
        written[place] = orjson.dumps({**known, **more}).decode()
        name = columns.split(", ")[place]
        database.execute(
            f"UPDATE {table} SET {name} = ?, crc = ?", (written[place], checksum(*written))
        )


def test_open_turns_and_evaluations_that_wait_for_judges_are_taken_up(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        changes = Changes(turns=(TURN,), judgments_begun=(PENDING,))
        assert store.commit(Progress(0, 0.0, WALL, [ONE], changes))
    shadow = {**PENDING.shadow._asdict(), "later": 1} if PENDING.shadow else {}
    written_later(tmp_path, "turns", turns.COLUMNS, -1, {"later": 1})
    awaited = "awaited", pending_judgments.COLUMNS
    written_later(tmp_path, *awaited, -2, {"later": 1, "shadow": shadow})
    written_later(tmp_path, *awaited, -1, {"later": 1})
    store = SqliteStore(tmp_path)
    try:
        restored = store.open()
        assert restored.turns == (TURN,)
        [pending] = restored.pending
        assert replace(pending, body=PENDING.body) == PENDING
        assert pending.invocation() == INVOCATION
        assert store.usage().quarantined == 0
    finally:
        store.close()
