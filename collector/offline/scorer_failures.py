"""Where the code of a scorer has failed, for its author. Results have only type and text."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

import pathgauge

_LIBRARY = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_PACKAGES = "site-packages"
_PATHGAUGE = str(Path(pathgauge.__file__).parent)


class ScorerFailures:
    """The first place of each kind of failure. It is called by the scoring."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], str] = {}

    def __call__(self, metric: str, error: BaseException | None, trace_id: str) -> None:
        """Remember a failure; see `OnFailure`."""
        if error is not None:
            kind = metric, type(error).__name__
            self._places[kind] = self._places.get(kind) or _place(error)

    def notes(self) -> list[str]:
        """A line for each kind."""
        return [
            f"{metric}: the scorer raised {error} at {place}"
            for (metric, error), place in self._places.items()
        ]


def _place(error: BaseException) -> str:
    """File, line and function: the last ones of the author, even if a library was called there."""
    frames = list(traceback.walk_tb(error.__traceback__))
    files = [frame.f_code.co_filename for frame, _ in frames]
    ranks = [(_is_authors(file), not _is_library(file), at) for at, file in enumerate(files)]
    frame, line = frames[max(ranks)[-1]]
    return f"{frame.f_code.co_filename}:{line} ({frame.f_code.co_qualname})"


def _is_authors(file: str) -> bool:
    return _PACKAGES not in file and not _is_library(file) and not file.startswith(_PATHGAUGE)


def _is_library(file: str) -> bool:
    return file.startswith(("<", *_LIBRARY)) and _PACKAGES not in file
