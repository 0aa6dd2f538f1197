"""Backfills a simulated past, and reads what the folder holds then."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pathgauge.collector.core.evidence.evidence import to_json
from pathgauge.collector.store.evidence.bodies import unpacked
from support.past import CRITERIA, REFERENCES, START
from support.running import PATHGAUGE

RESULTS = (
    "SELECT tenant, trace_id, span_id, agent, scenario, verdict, category, signature, body"
    " FROM results WHERE withdrawn = 0 ORDER BY revision"
)
WHOLE = (
    "SELECT tenant, trace_id, span_id, revision, at, agent, scenario, withdrawn, body, verdict"
    " FROM results ORDER BY trace_id, span_id, revision"
)


def configured(folder: Path, **more: Any) -> Path:
    """Write a configuration with the references of the past, whose store is `past`."""
    documents = "\n---\n".join(map(json.dumps, REFERENCES))
    (folder / "references.yaml").write_text(documents)
    written = {
        "store": {"path": "past"},
        "references": ["references.yaml"],
        "criteria": CRITERIA,
        **more,
    }
    path = folder / "pathgauge.yaml"
    path.write_text(json.dumps(written))
    return path


def arguments(folder: Path, address: str, seconds: float, *more: object) -> list[str]:
    """The words after `pathgauge` that backfill so many seconds of the past into `past`. Of an
    option that is given again in `more`, the last value counts.
    """
    period = "--since", at(START), "--until", at(START + seconds)
    paths = "--config", folder / "pathgauge.yaml", "--output", folder / "past"
    return [str(one) for one in ("backfill", address, *period, *paths, *more)]


def command(
    folder: Path, address: str, seconds: float, *more: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`pathgauge backfill` as a process without a terminal."""
    return subprocess.run(
        [str(PATHGAUGE), *arguments(folder, address, seconds, *more)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def at(seconds: float) -> str:
    """A time of the past, as an option."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def rows(folder: Path, statement: str = WHOLE) -> Sequence[tuple[Any, ...]]:
    """The rows of the store in `folder`."""
    path = folder / "pathgauge.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(statement).fetchall()


def newest_results(folder: Path) -> Mapping[tuple[str, ...], Any]:
    """The newest result of each invocation, without what depends on the order of arrival."""
    found = {}
    for row in rows(folder, RESULTS):
        body = json.loads(row[8])
        for name in ("revision", "closed_by"):
            body.pop(name, None)
        found[row[:3]] = (*row[3:8], body)
    return found


def evidence(folder: Path) -> Mapping[tuple[str, ...], Any]:
    """What explains each result."""
    statement = "SELECT tenant, trace_id, span_id, at, failed, body FROM evidence"
    return {row[:3]: (*row[3:5], to_json(unpacked(row[5]))) for row in rows(folder, statement)}


def samples(folder: Path, name: str) -> list[tuple[str, float, float]]:
    """The samples of a series in the file: labels, value and Unix time."""
    found = []
    for line in (folder / "openmetrics.txt").read_text().splitlines():
        if line.partition("{")[0].partition(" ")[0] == name:
            series, value, time = line.rsplit(" ", 2)
            found.append((series.removeprefix(name), float(value), float(time)))
    return found
