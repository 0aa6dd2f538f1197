"""One request of a browser, as the pages see it, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response

from pathgauge.collector.api.sources import Sources
from pathgauge.collector.web.links import NO_NAME


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that may be answered."""

    sources: Sources
    tenant: str | None
    """Whose data may be read; `None`: all data."""
    query: Mapping[str, str]
    """The parameters that have a value: a form sends empty fields as well."""
    path: Mapping[str, str]
    """The variable parts of the path."""
    now: float
    """Unix seconds."""
    trace_url: str | None = None
    """The page of a trace in its backend, with a place for the id."""
    dashboard_url: str | None = None
    """The dashboard of an agent in a scenario, with places for their names."""
    answerable: Collection[str] = ()
    """The tenants of whose runs people can say here whether they were good."""
    search_until: float = 0.0
    """Until then, on the monotonic clock, a search that has found nothing goes on."""
    resumed: str | None = None
    """The cursor at which it goes on."""
    has_tenants: bool = False
    """Whether tenants are configured."""

    @property
    def shown_tenant(self) -> str | None:
        """The tenant whose data is wanted: a reader may choose one."""
        return self.query.get("tenant") if self.tenant is None else self.tenant

    def listed(self, tenant: str) -> str:
        """The tenant in a link to the list of results, which shows all tenants without one. The
        one without a name is named only if it may have others beside it: runs from a time before
        tenants were configured.
        """
        return tenant or (NO_NAME if self.has_tenants else "")


@dataclass(frozen=True, slots=True)
class Page:
    """A template with its values."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


View = Callable[[Visit], "Page | Response | Visit"]
"""Finds what a page shows; a `Visit` continues after other queries had their turn. Raises
`ProblemError` and `StoreError`.
"""
