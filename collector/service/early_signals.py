"""Signals that arrive before the service can act on them: while modules are loaded, files are read,
and a process of a cluster waits for its broker.

SIGHUP ends a process that does not handle it, and systemd takes this for an orderly stop, which it
does not follow up with a start. In a container, SIGTERM would do nothing: the kernel drops signals
for the process with the number 1 that it does not handle, so that SIGKILL has to end it.
"""

from __future__ import annotations

import os
import signal
from typing import NoReturn


def hold() -> None:
    """From now on SIGHUP waits for `release`, and SIGTERM ends the process with status 0: it has
    accepted nothing yet. To be called by the main thread.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    signal.signal(signal.SIGTERM, _end)


def release() -> None:
    """Deliver a SIGHUP that was held, to the handler that is there now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


def _end(number: int, frame: object) -> NoReturn:
    os._exit(0)
