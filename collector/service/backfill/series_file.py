"""Writes what `/metrics` would have shown, at its original times, as an OpenMetrics file for
`promtool tsdb create-blocks-from openmetrics`.

The file grows with each slice of the backfill, and is cut back to the last durable one when a
backfill is resumed. So it holds each sample once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pathgauge.collector.service.backfill.history import SourceError
from pathgauge.collector.sinks.prometheus.exposition.blocks import Block, inflated
from pathgauge.collector.sinks.prometheus.exposition.registry import END
from pathgauge.collector.sinks.prometheus.exposition.text import labels as written_labels

NAME = "openmetrics.txt"
_SAMPLE = re.compile(rb'([a-zA-Z_:][\w:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? (\S+)')
_LABEL = re.compile(rb'(\w+)="(?:[^"\\]|\\.)*"')
_COMMENT = b"#"


class SeriesFile:
    """The file in a folder."""

    def __init__(self, folder: Path, size: int, labels: Mapping[str, str]) -> None:
        """`size`: how many bytes of it are durable. `labels` are added to every series, such as
        `job` and `instance`, which Prometheus adds when it scrapes. Raises `OSError`.
        """
        path = folder / NAME
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(size)
        self._file.seek(size)
        self._names = frozenset(name.encode() for name in labels)
        self._checked: set[bytes] = set()
        self._added = written_labels(labels, labels.values()).encode()
        self._described = size > 0

    def write(self, parts: Iterable[bytes | Block], at: float) -> None:
        """Add a scrape at a Unix time. Raises `SourceError` if a series has an added label."""
        stamp = b" %.3f\n" % at
        for part in parts:
            text = inflated(part) if isinstance(part, Block) else part
            self._file.writelines(self._lines(text, stamp))
        self._described = True

    def sync(self) -> int:
        """Make durable what was written, and return its size."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def finish(self) -> None:
        """Write the end that OpenMetrics asks for."""
        self._file.write(END)
        self.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _lines(self, text: bytes, stamp: bytes) -> Iterable[bytes]:
        for line in text.splitlines():
            if line.startswith(_COMMENT):
                if not self._described:
                    yield line + b"\n"
                continue
            sample = _SAMPLE.match(line)
            assert sample is not None, line
            name, of, value = sample.groups()
            if self._names and name not in self._checked:
                self._check(name, of or b"")
            labels = b",".join(part for part in (of, self._added) if part)
            if labels:
                name = b"%s{%s}" % (name, labels)
            yield b"%s %s%s" % (name, value, stamp)

    def _check(self, name: bytes, of: bytes) -> None:
        """All series of one name have the same labels."""
        self._checked.add(name)
        for label in _LABEL.findall(of):
            if label in self._names:
                text = f"found {label.decode()}, which is a label of {name.decode()}"
                raise SourceError(f"--label: {text}, expected another name")
