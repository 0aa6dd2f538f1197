"""Parses the options of `pathgauge purge` that say what to remove."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from pathgauge.collector.core.documents.quantities import parse_duration
from pathgauge.collector.store import Selection

_TRACE_ID = re.compile("[0-9a-f]{32}")


class SelectionError(ValueError):
    """The options do not select anything valid; the message is for the operator."""


def select(
    trace: str | None, scenario: str | None, tenant: str | None, before: str | None, now: float
) -> Selection:
    """Parse the options; `now` in Unix seconds. Raises `SelectionError`."""
    if [trace, scenario, tenant, before].count(None) != 3:
        raise SelectionError("expected exactly one of --trace, --scenario, --tenant and --before")
    if trace is not None:
        if not _TRACE_ID.fullmatch(trace.lower()) or trace.strip("0") == "":
            raise SelectionError(
                f"--trace: found {trace!r}, expected the 32 hexadecimal digits of a trace id"
            )
        return Selection(trace_id=trace.lower())
    if scenario is not None:
        if not scenario:
            raise SelectionError("--scenario: found nothing, expected a scenario id")
        return Selection(scenario=scenario)
    if tenant is not None:
        if not tenant:
            raise SelectionError("--tenant: found nothing, expected the name of a tenant")
        return Selection(tenant=tenant)
    return Selection(before=_time(before or "", now))


def _time(text: str, now: float) -> float:
    try:
        return now - parse_duration(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SelectionError(
            f"--before: found {text!r}, expected an age such as 7d or 12h, or a date such as"
            " 2026-11-01 or 2026-11-01T12:00Z"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    at = moment.timestamp()
    if at > now:
        raise SelectionError(f"--before: found {text!r}, expected a time in the past")
    return at
