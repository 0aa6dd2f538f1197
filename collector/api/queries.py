"""What can be asked: the parameters of each endpoint, checked by pydantic."""

from __future__ import annotations

import time
from collections.abc import Container
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError
from starlette.requests import Request

from pathgauge.collector.api.attribute_docstrings import describe_properties
from pathgauge.collector.api.problems import OTHER_TENANT, ProblemError, checked
from pathgauge.collector.api.wanted_values import (
    WantedCategory,
    WantedFlag,
    WantedReason,
    WantedVerdict,
)
from pathgauge.collector.core.documents.quantities import parse_duration
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.results import DEFAULT_LIMIT, MAX_LIMIT
from pathgauge.collector.store.schema import name_of
from pathgauge.scorers.types import Json

_MAX_CHARS = 1_000


def parse_time(value: object) -> float:
    """Unix seconds, from an RFC 3339 time, or from a duration such as `1h` that reaches back from
    now.
    """
    text = str(value)
    try:
        return time.time() - parse_duration(text)
    except ValueError:
        pass
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("a time such as 2026-11-23T03:00:00Z, or an age such as 1h") from None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def _time(value: object) -> float:
    try:
        return parse_time(value)
    except ValueError as error:
        expected = {"expected": str(error)}
        raise PydanticCustomError("time", "Input should be {expected}", expected) from None


_TIME_SCHEMA: dict[str, Json] = {
    "anyOf": [
        {"type": "string", "pattern": "^([0-9]{1,6}(ms|[smhd])){1,4}$"},
        {"type": "string", "format": "date-time"},
    ],
    "examples": ["1h", "2026-11-23T03:00:00Z"],
}
Time = Annotated[float | None, BeforeValidator(_time), WithJsonSchema(_TIME_SCHEMA)]
Name = Annotated[str | None, Field(max_length=_MAX_CHARS)]


def _given(names: object) -> object:
    """An empty parameter names nothing."""
    return tuple(filter(None, names)) if isinstance(names, (list, tuple)) else names


Names = Annotated[tuple[Annotated[str, Field(max_length=_MAX_CHARS)], ...], BeforeValidator(_given)]


def lower(value: Json) -> Json:
    """Ids in hexadecimal are stored in lower case; some programs show them in upper case."""
    return value.lower() if isinstance(value, str) else value


HexId = Annotated[str | None, BeforeValidator(lower), Field(max_length=64)]


class Query(BaseModel):
    """The parameters of an endpoint. Unknown ones are errors: a filter that is misspelt must not
    return everything.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=describe_properties)

    several: ClassVar[frozenset[str]] = frozenset()
    """The parameters that may be repeated."""


QueryT = TypeVar("QueryT", bound=Query)


class TraceQuery(Query):
    """Whose trace is wanted: two tenants may use the same id."""

    tenant: Name = None


class ClusterQuery(Query):
    """Which failures are wanted."""

    tenant: Name = None
    agent: Name = None
    scenario: Name = None
    category: WantedCategory | None = None
    signature: Name = None
    since: Time = None
    """Only what was stored at this time or later."""
    until: Time = None
    """Only what was stored before this time."""

    def filter(self, tenant: str | None) -> Filter:
        """The filter over the results of one tenant; `None`: of all."""
        wanted = {name: getattr(self, name) for name in type(self).model_fields}
        wanted = {name: wanted[name] for name in Filter.__dataclass_fields__ if name in wanted}
        return _filter(wanted, self.tenant if tenant is None else tenant)


def _filter(wanted: dict[str, Any], tenant: str | None) -> Filter:
    """Names as they are stored."""
    for name in ("agent", "scenario", "version"):
        if wanted.get(name) is not None:
            wanted[name] = name_of(wanted[name])
    return Filter(**{**wanted, "tenant": tenant})


class EventQuery(ClusterQuery):
    """Which results are wanted."""

    criterion: Name = None
    """Only results with this criterion. With `verdict` or `reason`, the criterion has these."""
    verdict: WantedVerdict | None = None
    version: Name = None
    """The version of the agent."""
    reason: WantedReason | None = None
    """Why a criterion has no value, or why there is no reference."""
    flag: WantedFlag | None = None
    """A defect of the telemetry."""
    trace_id: HexId = None


class ResultQuery(EventQuery):
    """Which results are wanted, and how many."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)
    cursor: str | None = Field(None, pattern="^[0-9]{1,18}$")
    """`next` of the page before."""


class VersionQuery(Query):
    """Which results are compared."""

    tenant: Name = None
    agent: Name = None
    scenario: Name = None
    since: Time = None
    """Only what was stored at this time or later."""
    until: Time = None
    """Only what was stored before this time."""

    def filter(self, tenant: str | None) -> Filter:
        """The filter over the results of one tenant; `None`: of all."""
        wanted = {name: getattr(self, name) for name in VersionQuery.model_fields}
        return _filter(wanted, self.tenant if tenant is None else tenant)


class VerdictQuery(VersionQuery):
    """Which versions are compared, and how."""

    agent: str = Field(min_length=1, max_length=_MAX_CHARS)
    version: str = Field(min_length=1, max_length=_MAX_CHARS)
    """The version that is to be released."""
    against: str = Field(min_length=1, max_length=_MAX_CHARS)
    """The version that it is compared with."""
    several = frozenset({"metric"})
    metric: Names = ()
    """The metrics; can be repeated. One value may have several, separated by commas, unless a
    criterion has this name. Default: the criteria with a threshold.
    """
    confidence: float = Field(0.95, ge=0.5, le=0.9999)
    """The probability that the intervals of all metrics hold at all times."""
    margin: float = Field(0.05, ge=0, le=1)
    """`not_worse`: certainly worse by less than this."""
    min_effect: float = Field(0.0, ge=0, le=1)
    """`worse`, `better`: certainly by more than this."""

    @field_validator("against")
    @classmethod
    def _is_another_version(cls, against: str, info: ValidationInfo) -> str:
        if name_of(against) == name_of(info.data.get("version")):
            expected = {"expected": "another version than the one to compare"}
            raise PydanticCustomError("same_version", "Input should be {expected}", expected)
        return against


class ShadowQuery(VersionQuery):
    """Whose scores in shadow are compared with the active ones, and how."""

    agent: str = Field(min_length=1, max_length=_MAX_CHARS)
    several = frozenset({"metric"})
    metric: Names = ()
    """The metrics, as in `/verdict`. Default: the active criteria with a threshold."""
    confidence: float = Field(0.95, ge=0.5, le=0.9999)
    """The probability that the intervals of all metrics hold at all times."""
    margin: float = Field(0.05, ge=0, le=1)
    """`not_worse`: certainly worse by less than this."""
    min_effect: float = Field(0.0, ge=0, le=1)
    """`worse`, `better`: certainly by more than this."""


class DriftQuery(Query):
    """Which streams of scores are wanted."""

    tenant: Name = None
    agent: Name = None
    scenario: Name = None
    metric: Name = None


class ReferenceQuery(Query):
    """Whose reference is wanted."""

    scenario: str = Field(max_length=_MAX_CHARS)


def read(model: type[QueryT], request: Request, tenant: str | None) -> QueryT:
    """The checked parameters of a request with the token of this tenant; `None`: of a reader.
    Raises `ProblemError`.
    """
    query = checked(model, _parameters(request, model.several))
    # An answer about the tenant of the token would be taken for one about the other tenant.
    if tenant is not None and (getattr(query, "tenant", None) or tenant) != tenant:
        raise ProblemError(403, OTHER_TENANT)
    return query


def _parameters(request: Request, several: Container[str]) -> dict[str, str | list[str]]:
    """The parameters of a request. Raises `ProblemError` for one that is given twice, unless it is
    one of `several`.
    """
    found: dict[str, str | list[str]] = {}
    for name, value in request.query_params.multi_items():
        if name in several:
            found[name] = [*found.get(name, ()), value]
        elif name in found:
            raise ProblemError(422, f"{name}: found it twice, expected it once")
        else:
            found[name] = value
    return found
