"""Bearer tokens from a file with one token per line.

Several tokens in one file allow rotation. Blank lines and lines that begin with `#` are ignored.
Only hashes are kept in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import structlog

from pathgauge.collector.config.secret_files import (
    SecretFileError,
    SecretFiles,
    read_secret,
)

_log = structlog.get_logger(__name__)

MIN_TOKEN_LENGTH = 16
"""In characters. Shorter tokens could be guessed."""

_KEY = "token_file"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""The tokens that RFC 6750 allows in the header."""


class TokenFile:
    """The tokens of one file."""

    def __init__(
        self, path: Path, check: Callable[[Iterable[bytes]], None] = lambda _: None
    ) -> None:
        """`check` is called with the digests each time before they become active. Raises
        `SecretFileError`, also from `check`.
        """
        self._path = path
        self._file = SecretFiles((path,), lambda: _read(path, check))

    @property
    def digests(self) -> tuple[bytes, ...]:
        """The SHA-256 of each token."""
        return self._file.current

    @property
    def warnings(self) -> tuple[str, ...]:
        """Properties of the file that are probably not intended."""
        status = self._path.stat()
        mode = stat.S_IMODE(status.st_mode)
        # A Secret of Kubernetes belongs to root, and is read by members of its group.
        enough = 0o600 if status.st_uid == os.geteuid() else 0o640
        if not mode & ~enough & 0o077:
            return ()
        return (
            f"{self._path}: other users can read these tokens: mode {mode:04o},"
            f" better {enough:04o}",
        )

    def holds(self, token: str) -> bool:
        """Whether the token is in the file. Takes the same time for every token."""
        return holds(self.digests, token)

    def refresh(self) -> None:
        """Read the file again if it has changed. Somebody who replaces it may forget its mode."""
        before = self._file.current
        self._file.refresh()
        if self._file.current is not before:
            with contextlib.suppress(OSError):  # it was removed meanwhile, and what was read counts
                for warning in self.warnings:
                    _log.warning("a token file is probably not as intended", warning=warning)


def holds(digests: Iterable[bytes], token: str) -> bool:
    """Whether one of the digests belongs to the token. Always compares with all of them."""
    digest = _digest(token)
    return sum([hmac.compare_digest(digest, other) for other in digests]) > 0


def bearer(authorization: Sequence[str]) -> str | None:
    """The token in the values of the Authorization headers; `None` unless there is exactly one
    header, of the scheme Bearer.
    """
    if len(authorization) != 1:
        return None
    scheme, _, token = authorization[0].partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _read(path: Path, check: Callable[[Iterable[bytes]], None]) -> tuple[bytes, ...]:
    try:
        lines = read_secret(path, _KEY).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise SecretFileError(
            _KEY, f"{path}: found bytes that are not UTF-8, expected one token per line"
        ) from None
    found = tuple(
        _digest(_checked(line.strip(), f"{path}:{number}"))
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    if not found:
        raise SecretFileError(_KEY, f"{path}: found no token, expected one per line")
    check(found)
    return found


def _checked(token: str, place: str) -> str:
    if len(token) < MIN_TOKEN_LENGTH:
        raise SecretFileError(
            _KEY,
            f"{place}: found a token of {len(token)} characters, expected at least"
            f" {MIN_TOKEN_LENGTH}",
        )
    if not _TOKEN.fullmatch(token):
        raise SecretFileError(
            _KEY,
            f"{place}: found a character that is not allowed in tokens, expected letters, digits"
            " and -._~+/, and = only at the end",
        )
    return token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
