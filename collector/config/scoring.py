"""The sections about scoring: scenarios, trace assembly, windows, conversations, sessions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pathgauge.collector.config.section import Section
from pathgauge.collector.core.documents.quantities import Count, Duration, Size, Switch
from pathgauge.collector.core.invocations import DEFAULT_KEYS
from pathgauge.collector.core.sessions.session import SessionBounds

_MiB = 2**20


class Scenario(Section):
    """Where the scenario id of an invocation is, and how often scenarios are expected."""

    keys: Annotated[tuple[str, ...], Field(min_length=1)] = DEFAULT_KEYS
    match_user_input: Switch = False
    expected_interval: Annotated[Duration, Field(gt=0)] | None = None
    """Seconds within which each scenario should be evaluated again. A reference can override it."""


class Assembly(Section):
    """When a trace is complete, and how large it may be. Times in seconds."""

    settle: Duration = 6.0
    """Quiet period after the last span when the root has ended."""
    idle: Duration = 30.0
    """Quiet period while the root is missing."""
    max_age: Duration = 600.0
    late_ttl: Duration = 300.0
    """Allowed lateness of spans after the trace was read."""
    max_trace_spans: Count = 10_000
    max_trace_bytes: Size = 16 * _MiB
    max_open_bytes: Size = 192 * _MiB
    max_retained_bytes: Size = 32 * _MiB
    max_reading_cpu: Duration = 10.0
    """CPU time for reading one trace."""

    @model_validator(mode="after")
    def _in_order(self) -> Assembly:
        if not self.settle <= self.idle <= self.max_age:
            found = f"found settle {self.settle:g}s, idle {self.idle:g}s, max_age {self.max_age:g}s"
            raise ValueError(f"{found}, expected settle <= idle <= max_age")
        if self.max_trace_bytes > self.max_open_bytes:
            trace, total = self.max_trace_bytes, self.max_open_bytes
            found = f"found max_trace_bytes {trace}, max_open_bytes {total}"
            raise ValueError(f"{found}, expected max_trace_bytes <= max_open_bytes")
        return self


class Windows(Section):
    """The scores that an exported mean covers. Times in seconds."""

    size: Count = 100
    max_age: Duration = 3600.0
    stale_after: Duration = 3600.0
    min_samples: Count = 20

    @model_validator(mode="after")
    def _enough_fit(self) -> Windows:
        if self.min_samples > self.size:
            raise ValueError(
                f"found min_samples {self.min_samples}, size {self.size}, expected min_samples <="
                " size"
            )
        return self


class Conversations(Section):
    """When a conversation has ended. Times in seconds."""

    idle: Duration = 1800.0


class Sessions(Section):
    """When a session has ended, and how large it may be. Times in seconds."""

    idle: Annotated[Duration, Field(gt=0)] = 1800.0
    settle: Annotated[Duration, Field(gt=0)] = 10.0
    """Quiet period after a signal of the end, or after a correction of an ended session."""
    reopen: Annotated[Duration, Field(gt=0)] = 21_600.0
    """How long a new turn opens an ended session again, instead of beginning another one."""
    max_age: Annotated[Duration, Field(gt=0)] = 86_400.0
    max_turns: Count = 200
    max_session_bytes: Size = 4 * _MiB

    @model_validator(mode="after")
    def _in_order(self) -> Sessions:
        if not self.settle <= self.idle <= self.max_age:
            found = f"found settle {self.settle:g}s, idle {self.idle:g}s, max_age {self.max_age:g}s"
            raise ValueError(f"{found}, expected settle <= idle <= max_age")
        return self

    def bounds(self) -> SessionBounds:
        """The same for the core."""
        return SessionBounds(**self.model_dump())
