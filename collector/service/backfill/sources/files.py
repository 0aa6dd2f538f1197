"""Reads traces from files. They may hold traces in any order, and parts of one trace in several.

So all files are read first, one request at a time, into a temporary database on disk, from which
the traces come in the order of time. It holds what redaction will remove, so its file has no name:
nothing of it stays when the process is killed.
"""

from __future__ import annotations

import glob
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pathgauge.collector.core import otlp
from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.offline.export_requests import ExportRequest, export_requests
from pathgauge.collector.offline.progress import Progress, unreported
from pathgauge.collector.offline.tables.recognition import read_table
from pathgauge.collector.offline.trace_files import UnreadableFileError, uncompressed
from pathgauge.collector.service.backfill.history import (
    Found,
    PastTrace,
    SourceError,
    TooManyError,
    whole_traces,
)

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE parts (trace_id TEXT NOT NULL, start INTEGER, logs INTEGER NOT NULL, body BLOB);
"""
_TRACES = """
CREATE TABLE traces AS
  SELECT trace_id, min(start) AS start FROM parts WHERE logs = 0 GROUP BY trace_id;
CREATE INDEX traces_by_start ON traces (start);
CREATE INDEX parts_by_trace ON parts (trace_id);
"""
_LIMITS = otlp.DecodeLimits(max_records=10_000_000)
_MAX_DB_INTEGER = 2**63 - 1


class FileSource:
    """Files that match a pattern."""

    def __init__(self, pattern: str, spool: Path, progress: Progress = unreported) -> None:
        """`spool` is the path of the temporary database. Raises `SourceError` when nothing matches,
        `UnreadableFileError` for a file without traces, and `OSError`.
        """
        self.name = f"file://{Path(pattern).absolute()}"
        files = _matching(pattern)
        if not files:
            raise SourceError(f"file://{pattern}: found no file, expected trace files")
        self._notes: list[str] = []
        self._rejected = 0
        spool.unlink(missing_ok=True)  # of an earlier version
        self._connection = sqlite3.connect(spool, isolation_level=None)
        try:
            self._connection.executescript(_SCHEMA)
            spool.unlink()
            self._copy(files, progress)
        except BaseException:
            self.close()
            raise

    def read(self, since: int, until: int, limit: int) -> Found:
        """The traces that began in this time."""
        ids = [
            trace_id
            for (trace_id,) in self._connection.execute(
                "SELECT trace_id FROM traces WHERE start >= ? AND start < ? LIMIT ?",
                (since, until, limit + 1),
            )
        ]
        if len(ids) > limit:
            raise TooManyError
        traces = [trace for one in ids for trace in self._trace(one, since, until)]
        rejected, self._rejected = self._rejected, 0
        notes, self._notes = self._notes, []
        return Found(traces, rejected, notes)

    def begin(self, since: int, until: int) -> int:
        """When the first trace of this time began."""
        [first] = self._connection.execute(
            "SELECT min(start) FROM traces WHERE start >= ? AND start < ?", (since, until)
        ).fetchone()
        return until if first is None else int(first)

    def close(self) -> None:
        """Delete the temporary database."""
        self._connection.close()

    def _copy(self, files: Sequence[Path], progress: Progress) -> None:
        self._connection.execute("BEGIN")
        for number, file in enumerate(files):
            progress(f"reading {file}", number, len(files))
            self._take(file)
        self._connection.execute("COMMIT")
        self._connection.executescript(_TRACES)

    def _take(self, file: Path) -> None:
        name, data = str(file), uncompressed(file)
        if read_table(data, name) is not None:
            raise UnreadableFileError(f"{name}: found a table, expected traces")
        try:
            for request in export_requests(data):
                self._add(request, name)
        except otlp.UndecodableError as error:
            raise UnreadableFileError(f"{name}: {error}") from error

    def _add(self, request: ExportRequest, name: str) -> None:
        self._rejected += request.rejected
        if request.incomplete is not None:
            self._notes.append(f"{name}: {request.incomplete}")
        self._insert(request.spans)
        self._insert(request.logs)

    def _insert(self, records: Sequence[Span] | Sequence[LogRecord]) -> None:
        of_trace: dict[str, list[Any]] = {}
        for record in records:
            if record.trace_id:
                of_trace.setdefault(record.trace_id, []).append(record)
        self._connection.executemany(
            "INSERT INTO parts VALUES (?, ?, ?, ?)",
            [
                (trace_id, _start(members), isinstance(members[0], LogRecord), _encoded(members))
                for trace_id, members in of_trace.items()
            ],
        )

    def _trace(self, trace_id: str, since: int, until: int) -> list[PastTrace]:
        spans: list[Span] = []
        logs: list[LogRecord] = []
        for is_logs, body in self._connection.execute(
            "SELECT logs, body FROM parts WHERE trace_id = ? ORDER BY rowid", (trace_id,)
        ):
            if is_logs:
                logs += otlp.decode_logs(body, limits=_LIMITS).records
            else:
                spans += otlp.decode_traces(body, limits=_LIMITS).records
        return whole_traces(spans, logs, since, until)


def _matching(pattern: str) -> list[Path]:
    paths = [Path(found) for found in glob.glob(pattern, recursive=True)]
    folders = [path for path in paths if path.is_dir()]
    files = [path for path in paths if path.is_file()]
    files += [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return sorted(set(files))


def _start(records: Iterable[Span | LogRecord]) -> int | None:
    starts = [record.start_ns for record in records if isinstance(record, Span)]
    return min([*starts, _MAX_DB_INTEGER]) if starts else None


def _encoded(records: Sequence[Span | LogRecord]) -> bytes:
    return encode_request(records)
