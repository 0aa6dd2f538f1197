"""Reports the operator's mistakes, such as an invalid configuration, without a traceback."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from pathgauge.collector.cli.console import print_messages

if TYPE_CHECKING:
    from pathgauge.collector.core.documents import KeyPath, Problem


@contextmanager
def operator_errors(port_in_use_hint: str = "") -> Iterator[None]:
    """Print errors that the operator can correct on standard error, and exit with status 2.

    `port_in_use_hint` is printed after the error when a port is already in use.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the output, such as `head`, has closed the pipe: typer exits quietly
    except Exception as error:
        if not isinstance(error, _operator_error_types()):
            raise
        print_messages(_message(error).splitlines())
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE and port_in_use_hint:
            print_messages([port_in_use_hint])
        raise typer.Exit(2) from error


@contextmanager
def placed_errors(problem: Callable[[KeyPath, str], Problem]) -> Iterator[None]:
    """Name the place of what cannot be used: in the configuration file, or the option."""
    from pathgauge.collector.core.documents import SettingError

    try:
        yield
    except SettingError as error:
        raise error.placed(problem) from error


def _operator_error_types() -> tuple[type[Exception], ...]:
    """Imported only after a failure: these modules load pydantic and OpenTelemetry, which `--help`
    does not need.
    """
    from pathgauge.collector.config.plugins.registry import PluginError
    from pathgauge.collector.core.documents import ConfigError
    from pathgauge.collector.offline.trace_files import UnreadableFileError
    from pathgauge.collector.sinks.prometheus.rules.options import ChoiceError

    return ChoiceError, ConfigError, PluginError, UnreadableFileError, OSError


def _message(error: Exception) -> str:
    """The message; for a system error without the number that Python puts in front."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
