"""Uses rotated certificates: gRPC keeps those that a channel was built with, and so do connections
over HTTP that stay open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult

from pathgauge.collector.config.secret_files import SecretFiles


class RotatedExporter(LogRecordExporter):
    """An exporter that is built anew when its files have changed, before the next export. While the
    new files cannot be used, the last one stays. For one thread, except for `shutdown`.
    """

    def __init__(self, build: Callable[[], LogRecordExporter], files: Sequence[Path]) -> None:
        """Raises as `build` does."""
        self._built = SecretFiles(files, build)

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Export with the present files."""
        last = self._built.current
        self._built.refresh()
        if self._built.current is not last:
            last.shutdown()  # type: ignore[no-untyped-call]
        return self._built.current.export(batch)

    def shutdown(self) -> None:
        """Close the connection."""
        self._built.current.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        """Nothing waits here."""
        return True
