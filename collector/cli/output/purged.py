"""What a purge has removed, as text."""

from __future__ import annotations

from pathgauge.collector.store import Purged


def report(purged: Purged) -> str:
    """What was removed, as one line for the terminal."""
    counts = (
        (purged.requests, "request", "requests"),
        (purged.results, "result", "results"),
        (purged.damaged, "damaged row or file", "damaged rows and files"),
    )
    parts = [f"{count} {one if count == 1 else many}" for count, one, many in counts if count]
    if not parts:
        return "found nothing to remove"
    return f"removed it from {', '.join(parts)}"
