"""Starts `pathgauge` as a fork of a process that has loaded its modules.

Loading them takes a second of CPU, and tests start hundreds of services. What is started is a
process like any other: it has its own files, environment, signals and exit status. Only `sys.path`
is that of the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals

from pathgauge.collector.cli import app

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(["support.loaded_service"])
_START = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a fork is like a new process: Python reads its own variables only when it starts."""
    own = {name: value for name, value in environment.items() if name.startswith("PYTHON")}
    return own == _START


class ForkedProcess:
    """A process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self, words: Sequence[str | Path], output: Path, environment: Mapping[str, str]
    ) -> None:
        """Run `pathgauge` with these words in the present folder. It writes to `output`."""
        arguments = [str(word) for word in words], str(output), dict(environment), os.getcwd()
        self._process = _FORKS.Process(target=_run, args=arguments, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        """Its id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit status, or minus the number of the signal that ended it; `None` if it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The same."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The same when it has ended. Raises `subprocess.TimeoutExpired`."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("pathgauge", timeout or 0.0)
        return self.returncode

    def send_signal(self, number: Signals) -> None:
        """Send a signal, if it runs."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM, if it runs."""
        self.send_signal(SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, if it runs."""
        self.send_signal(SIGKILL)


def _run(words: Sequence[str], output: str, environment: Mapping[str, str], folder: str) -> None:
    file = os.open(output, os.O_WRONLY | os.O_APPEND)
    for standard in (sys.stdout, sys.stderr):
        os.dup2(file, standard.fileno())
    os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    app(words, prog_name="pathgauge")
