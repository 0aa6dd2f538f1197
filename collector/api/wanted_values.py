"""Verdicts, categories, reasons and flags that are asked for. Those of a later version of pathgauge
may be, too, if a stored result has them, and reasons that a plug-in made up: see `stored_values`.
"""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field, WithJsonSchema

from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.core.documents import did_you_mean
from pathgauge.collector.core.evaluations.evaluator import VERDICTS
from pathgauge.collector.core.evidence.categories import CATEGORIES
from pathgauge.collector.core.references import UNMATCHED
from pathgauge.collector.store.queries import results
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.sql import Connection
from pathgauge.scorers.matching.wording import short
from pathgauge.scorers.types import Flag, Reason

_MAX_CHARS = Field(max_length=256)
_REASONS: tuple[str, ...] = (*get_args(Reason), *UNMATCHED)
_FLAGS: tuple[str, ...] = get_args(Flag)


def _schema(known: tuple[str, ...]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(dict.fromkeys(known))})


WantedVerdict = Annotated[str, _MAX_CHARS, _schema(VERDICTS)]
WantedCategory = Annotated[str, _MAX_CHARS, _schema(CATEGORIES)]
WantedReason = Annotated[str, _MAX_CHARS, _schema(_REASONS)]
WantedFlag = Annotated[str, _MAX_CHARS, _schema(_FLAGS)]
"""`check_values` accepts more than the schema names."""


def check_values(connection: Connection | None, wanted: Filter) -> None:
    """Refuse what is misspelt, but not what is unknown and stored results have. Raises
    `ProblemError`. `connection` is `None` if nothing is stored.
    """
    with_verdict = Filter(tenant=wanted.tenant, verdict=wanted.verdict, criterion=wanted.criterion)
    _check(connection, "verdict", wanted.verdict, VERDICTS, with_verdict)
    with_category = Filter(tenant=wanted.tenant, category=wanted.category)
    _check(connection, "category", wanted.category, CATEGORIES, with_category)
    with_reason = Filter(tenant=wanted.tenant, reason=wanted.reason)
    _check(connection, "reason", wanted.reason, _REASONS, with_reason)
    with_flag = Filter(tenant=wanted.tenant, flag=wanted.flag)
    _check(connection, "flag", wanted.flag, _FLAGS, with_flag)


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
