"""Logs where the code of a scorer has failed, for its author.

The results have the text of the exception, which may quote telemetry, so the log has only its type
and the stack.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

import structlog

from pathgauge.collector.core.repetitions import Repetitions

_log = structlog.get_logger(__name__)

LOG_INTERVAL_S = 600.0
"""Minimum time between two log lines about the same kind of failure: a scorer that is broken fails
with every invocation, and each line has a stack.
"""
MAX_KINDS = 100
"""Kinds of failures that are told apart. A scorer can make up types of exceptions."""


class ScorerFailures:
    """For one thread."""

    def __init__(
        self,
        known: Mapping[str, int] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Each line has what is `known` of the process or its part."""
        self._clock = clock
        self._known = known
        self._repetitions = Repetitions(LOG_INTERVAL_S, MAX_KINDS)

    def __call__(self, metric: str, error: BaseException | None, trace_id: str) -> None:
        """Log a failure, unless one of its kind was logged shortly before. `error` is what the
        scorer has raised; `None`: it has returned what it may not.
        """
        kind = metric, "" if error is None else type(error).__qualname__
        failures = self._repetitions.due(kind, self._clock())
        if not failures:
            return
        known = {**self._known, "metric": metric, "failures": failures, "trace_id": trace_id}
        if error is None:
            _log.error("scorer returned no valid score", **known)
        else:
            _log.error("scorer failed", **known, exc_info=error)
