"""Where a thread is: the name of the function that it called last, outside of the standard library.

It names the scorer, or the plug-in, that a thread waits for.
"""

from __future__ import annotations

import sys
import sysconfig
import threading
from types import FrameType

_LIBRARY = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_PACKAGES = "site-packages"


def place_of(thread: threading.Thread) -> str:
    """File, line and function."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and _is_library(frame) and frame.f_back is not None:
        frame = frame.f_back
    if frame is None:
        return "an unknown place"
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} ({code.co_qualname})"


def _is_library(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(("<", *_LIBRARY)) and _PACKAGES not in file
