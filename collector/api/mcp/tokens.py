"""Finds the token of the user who runs `pathgauge mcp`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from pathgauge.collector.api.mcp.collector import OptionError

VARIABLE = "PATHGAUGE_TOKEN"
_TOKEN = re.compile(r"[\x21-\x7e]+")


def source(file: Path | None) -> Callable[[], str | None]:
    """Returns the token from the file, else from the environment. The file is read each time, so
    that a token can be replaced. Raises `OSError` or `OptionError` if there is none in it.
    """

    def read() -> str | None:
        if file is None:
            return _checked(os.environ.get(VARIABLE, "").strip(), VARIABLE) or None
        lines = map(str.strip, file.read_text(encoding="utf-8").splitlines())
        token = next((line for line in lines if line and not line.startswith("#")), "")
        if not token:
            raise OptionError(f"{file}: found no token, expected one on a line")
        return _checked(token, str(file))

    read()
    return read


def _checked(token: str, place: str) -> str:
    if token and not _TOKEN.fullmatch(token):
        raise OptionError(f"{place}: found characters that no token has, expected a token alone")
    return token
