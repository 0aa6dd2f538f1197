"""Deletes what an interrupted purge selects from the state of a scorer, before that is moved: its
mark stays behind, and nobody would know in the other stores what was to be removed.
"""

from __future__ import annotations

import math
import sqlite3

from pathgauge.collector.store.purge import mark, requests, rows
from pathgauge.collector.store.purge.removed import Removed
from pathgauge.collector.store.sql import delete

_TRACES = 500
"""Traces, or results, that one statement removes."""


def finish(connection: sqlite3.Connection) -> None:
    """To be called in a transaction. The mark is kept: the next start removes the bytes of what is
    deleted here from a file that stays.
    """
    what = mark.read(connection)
    if what is None:
        return
    found = requests.find(connection, what, 0)
    delete(connection, "journal", found.old + found.damaged)
    requests.remove(connection, found.mixed, found.traces)
    removed = Removed()
    while rows.remove_traces(connection, removed, math.inf, _TRACES):
        pass
    while rows.remove_old_results(connection, what, removed, math.inf, _TRACES):
        pass
    rows.remove_rest(connection, what, removed)
