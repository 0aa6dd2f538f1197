"""Uses rotated certificates: gRPC keeps those that a channel was built with, and so do connections
over HTTP that stay open.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult

from pathgauge.collector.core.documents import ConfigError

_log = structlog.get_logger(__name__)


class RotatedExporter(LogRecordExporter):
    """An exporter that is built anew when its files have changed, before the next export. While the
    new files cannot be used, the last one stays. For one thread, except for `shutdown`.
    """

    def __init__(self, build: Callable[[], LogRecordExporter], files: Sequence[Path]) -> None:
        """Raises as `build` does."""
        self._build = build
        self._files = files
        self._seen = self._stamps()  # before reading, so that a change meanwhile is noticed later
        self._logged = ""
        self._exporter = build()

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Export with the present files."""
        seen = self._stamps()
        if seen != self._seen:
            self._rebuild(seen)
        return self._exporter.export(batch)

    def shutdown(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        """Nothing waits here."""
        return True

    def _rebuild(self, seen: list[object]) -> None:
        try:
            fresh = self._build()
        except ConfigError as error:
            if str(error) != self._logged:
                _log.error(
                    "file cannot be used, its last valid content stays active", problem=str(error)
                )
            self._logged = str(error)
            return
        self._exporter, last = fresh, self._exporter
        self._seen, self._logged = seen, ""
        last.shutdown()  # type: ignore[no-untyped-call]
        _log.info("file read again", files=[str(file) for file in self._files])

    def _stamps(self) -> list[object]:
        return [_stamp(file) for file in self._files]


def _stamp(file: Path) -> object:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
