"""The active references, and whether the traffic uses them."""

from __future__ import annotations

from pathgauge.collector.api import overview
from pathgauge.collector.web.visit import Page, Visit


def reference_list(visit: Visit) -> Page:
    """The page."""
    found = overview.references(visit.sources, visit.tenant)
    unmatched = overview.unmatched(visit.sources, visit.tenant)
    return Page(
        "references.html",
        {
            "found": found,
            "never_run": sum(one.last_run is None for one in found.references),
            "unmatched": unmatched.scenarios[:100],
            "further_unmatched": unmatched.further_invocations,
            "in_memory": visit.sources.reading is None,
        },
    )
