"""Reads files of secrets again when they are rotated while the collector runs.

A failed rotation must not lock everybody out. So the last valid content stays active until the
files are valid again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import structlog

from pathgauge.collector.core.documents import ConfigError

_T = TypeVar("_T")
_Stamp: TypeAlias = tuple[int, int, int, int] | None

_log = structlog.get_logger(__name__)


class SecretFileError(ValueError):
    """A file that cannot be used. The message says what was found and what was expected, but never
    contains secrets.
    """

    def __init__(self, key: str, text: str) -> None:
        """`key` is the configuration key that names the file."""
        super().__init__(text)
        self.key = key


class SecretFiles(Generic[_T]):
    """The result of `read`, which is called again when the files change."""

    def __init__(self, paths: Iterable[Path], read: Callable[[], _T]) -> None:
        """`read` raises `SecretFileError` or `ConfigError`, and so does this."""
        self._paths = tuple(paths)
        self._read = read
        self._seen = self._stamps()  # before reading, so that a change meanwhile is noticed later
        self._logged = ""
        self.current = read()

    def refresh(self) -> None:
        """Read the files again if they changed. A problem is logged only once, but every call tries
        again.
        """
        seen = self._stamps()
        if seen == self._seen:
            self._logged = ""
            return
        try:
            self.current = self._read()
        except (SecretFileError, ConfigError) as error:
            if str(error) != self._logged:
                _log.error(
                    "file cannot be used, its last valid content stays active",
                    files=self._names(),
                    problem=str(error),
                    **({"key": error.key} if isinstance(error, SecretFileError) else {}),
                )
            self._logged = str(error)
        else:
            self._seen, self._logged = seen, ""
            _log.info("file read again", files=self._names())

    def _stamps(self) -> tuple[_Stamp, ...]:
        return tuple(_stamp(path) for path in self._paths)

    def _names(self) -> list[str]:
        return [str(path) for path in self._paths]


def read_secret(path: Path, key: str) -> bytes:
    """The content of a file. Raises `SecretFileError`."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise SecretFileError(
            key, f"found {str(path)!r}, which cannot be read: {reason}; expected a file"
        ) from None


def _stamp(path: Path) -> _Stamp:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
