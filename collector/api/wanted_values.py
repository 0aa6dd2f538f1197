"""Verdicts and categories that are asked for. Those of a later version of pathgauge may be, too, if
a stored result has them: see `stored_values`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema

from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.core.documents import did_you_mean
from pathgauge.collector.core.evaluations.evaluator import VERDICTS
from pathgauge.collector.core.evidence.categories import CATEGORIES
from pathgauge.collector.store.queries import results
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.sql import Connection
from pathgauge.scorers.matching.wording import short

WantedVerdict = Annotated[
    str,
    Field(max_length=256),
    WithJsonSchema({"type": "string", "enum": list(VERDICTS)}),
]
WantedCategory = Annotated[
    str,
    Field(max_length=256),
    WithJsonSchema({"type": "string", "enum": list(CATEGORIES)}),
]
"""`check_values` accepts more than the schema names."""


def check_values(connection: Connection | None, wanted: Filter) -> None:
    """Refuse a verdict or a category that is misspelt, but not one of a later version that stored
    results have. Raises `ProblemError`. `connection` is `None` if nothing is stored.
    """
    with_verdict = Filter(tenant=wanted.tenant, verdict=wanted.verdict, criterion=wanted.criterion)
    _check(connection, "verdict", wanted.verdict, VERDICTS, with_verdict)
    with_category = Filter(tenant=wanted.tenant, category=wanted.category)
    _check(connection, "category", wanted.category, CATEGORIES, with_category)


def _check(
    connection: Connection | None,
    name: str,
    value: str | None,
    known: tuple[str, ...],
    wanted: Filter,
) -> None:
    if value is None or value in known:
        return
    meant = did_you_mean(value, known)
    if connection is not None:
        page = results.find(connection, wanted, limit=1)
        # A long search may end before it finds one, or has looked at all results.
        if page.results or (page.next is not None and not meant):
            return
    expected = f"expected one of {', '.join(known)}{meant}"
    raise ProblemError(422, f"{name}: found {short(value)}, {expected}")
