"""Bearer tokens: a file with one token a line comes in, and whether somebody's token is among them
goes out.

Several tokens in one file are for rotation. Blank lines and lines that begin with `#` do not count.
Only hashes are kept.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pathgauge.collector.receivers.auth.secret_files import (
    SecretFileError,
    SecretFiles,
    read_secret,
)

MIN_TOKEN_LENGTH = 16
"""Characters. Shorter ones could be guessed."""

_KEY = "token_file"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What RFC 6750 lets stand in the header."""


class TokenFile:
    """The tokens of one file."""

    def __init__(
        self, path: Path, check: Callable[[Iterable[bytes]], None] = lambda _: None
    ) -> None:
        """`check` looks at the digests before they are in force, each time. It raises
        `SecretFileError`, and so does this.
        """
        self._path = path
        self._file = SecretFiles((path,), lambda: _read(path, check))

    @property
    def digests(self) -> tuple[bytes, ...]:
        """The SHA-256 of each token."""
        return self._file.current

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed, but probably not meant."""
        mode = stat.S_IMODE(self._path.stat().st_mode)
        return (
            (
                (
                    f"{self._path}: others than its owner may read these tokens: mode {mode:04o},"
                    " better 0600"
                ),
            )
            if mode & 0o077
            else ()
        )

    def holds(self, token: str) -> bool:
        """Whether the token is in the file; takes as long for every token."""
        return holds(self.digests, token)

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        self._file.refresh()


def holds(digests: Iterable[bytes], token: str) -> bool:
    """Whether one of the digests is that of the token; compares with all of them."""
    digest = _digest(token)
    return sum([hmac.compare_digest(digest, other) for other in digests]) > 0


def bearer(authorization: Sequence[str]) -> str | None:
    """The token in the values of the Authorization headers; `None` when there is no single one of
    this scheme.
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
            _KEY, f"{path}: found bytes that are no text, expected a token a line"
        ) from None
    found = tuple(
        _digest(_checked(line.strip(), f"{path}:{number}"))
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    if not found:
        raise SecretFileError(_KEY, f"{path}: found no token, expected one a line")
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
            f"{place}: found a character that no token may have, expected letters, digits and"
            " -._~+/=",
        )
    return token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
