"""Reads trace files, and tables of predictions. The format is detected from the content, see
`export_requests` and `tables.recognition`.

Files may be compressed with gzip. The files of a directory are read as one stream.
"""

from __future__ import annotations

import codecs
import gzip
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from pathgauge.collector.core import otlp
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.offline.export_requests import (
    EXPECTED,
    CutOffError,
    export_requests,
    holds_traces,
)
from pathgauge.collector.offline.tables.predictions import Predictions, predictions
from pathgauge.collector.offline.tables.recognition import read_table
from pathgauge.scorers.matching.wording import counted

STDIN = Path("-")
"""Stands for standard input."""

_YAML_HINT = "; if it comes from a pattern of --references, the pattern needs quotes"
"""Said of a YAML file, which holds references or a configuration."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class UnreadableFileError(ValueError):
    """A file that holds no traces. The message names the file, what was found and what was
    expected.
    """

    def __init__(self, text: str, *, damaged: bool = False) -> None:
        super().__init__(text)
        self.damaged = damaged
        """Whether it did hold traces: it was cut off, or a part of it is wrong."""


@dataclass(slots=True)
class TraceFiles:
    """The content of the files of one path."""

    spans: list[Span] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    tables: list[Predictions] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was skipped and why, one line each."""
    incomplete: list[str] = field(default_factory=list)
    """Those of the notes that say what was lost of a trace."""


def shown(path: Path) -> str:
    """The path, as messages name it."""
    return "standard input" if path == STDIN else str(path)


def read_path(path: Path) -> TraceFiles:
    """Read standard input, a file, or all trace files below a directory in the order of their
    names.

    Raises `UnreadableFileError` for a file, or for a directory without any trace file,
    `ConfigError` for a table with mistakes, and `OSError` from the file system.
    """
    found = TraceFiles()
    if path == STDIN or not path.is_dir():
        _read_file(path, found)
        return found
    files = sorted(file for file in path.rglob("*") if file.is_file())
    read = 0
    for file in files:
        try:
            _read_file(file, found)
            read += 1
        except UnreadableFileError as error:
            found.notes.append(f"skipped {error}")
            found.incomplete += found.notes[-1:] if error.damaged else []
    if not read:
        content = "no trace file among its files" if files else "an empty folder"
        raise UnreadableFileError(f"{path}: found {content}, {EXPECTED}")
    return found


def _read_file(path: Path, found: TraceFiles) -> None:
    """Add the content of a file, or nothing of it when it raises `UnreadableFileError`."""
    name, data = shown(path), uncompressed(path)
    table = read_table(data, name)
    if table is not None:
        found.tables.append(predictions(table))
        return
    read, rejected = TraceFiles(), 0
    try:
        for request in export_requests(data):
            read.spans.extend(request.spans)
            read.logs.extend(request.logs)
            rejected += request.rejected
            if request.incomplete is not None:
                read.incomplete.append(f"{name}: {request.incomplete}")
    except otlp.UndecodableError as error:
        hint = _YAML_HINT if path.suffix.lower() in (".yaml", ".yml") else ""
        damaged = isinstance(error, CutOffError) or bool(read.spans or read.logs)
        damaged = damaged or holds_traces(data)
        raise UnreadableFileError(f"{name}: {error}{hint}", damaged=damaged) from error
    if rejected:
        read.incomplete.append(f"{name}: rejected {counted(rejected, 'record')} as invalid OTLP")
    found.spans += read.spans
    found.logs += read.logs
    found.notes += read.incomplete
    found.incomplete += read.incomplete


def uncompressed(path: Path) -> bytes:
    """The content of a file, or of standard input. Raises `UnreadableFileError` or `OSError`."""
    data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            text = f"{shown(path)}: found broken gzip data ({error}), {EXPECTED}"
            raise UnreadableFileError(text, damaged=True) from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = "found UTF-16, which `>` of Windows PowerShell writes, expected UTF-8"
        raise UnreadableFileError(f"{shown(path)}: {text}")
    # The Collector's file exporter compresses each message, behind its length of four bytes.
    if data.startswith(_ZSTD) or data[4:8] == _ZSTD:
        raise UnreadableFileError(f"{shown(path)}: found zstd compression, expected gzip or none")
    return data
