"""The section `exporters`: the metrics endpoint, and one section for each installed sink."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Optional

from pydantic import BeforeValidator, Field, PydanticUserError, TypeAdapter, create_model

from pathgauge.collector.config.plugins.registry import PluginError
from pathgauge.collector.config.plugins.sinks import SINKS
from pathgauge.collector.config.receiving import Tls
from pathgauge.collector.config.section import Section, none_if_false
from pathgauge.collector.core.documents.quantities import Count, Endpoint, parse_endpoint
from pathgauge.scorers.types import Json

MAX_SERIES_TOTAL = 5000
"""With so many label sets, a scrape takes less than the 10 s that Prometheus waits by default."""


class Prometheus(Section):
    """The endpoint that Prometheus scrapes."""

    endpoint: Annotated[Endpoint, BeforeValidator(parse_endpoint)] = Endpoint("127.0.0.1", 9464)
    max_series: Count = 1500
    """Of each tenant."""
    max_series_total: Count = Field(
        default_factory=lambda given: max(MAX_SERIES_TOTAL, given.get("max_series", 0))
    )
    """Of all tenants together. One tenant can use all of `max_series` unless this key is given."""
    token_file: str | None = None
    tls: Annotated[Tls | None, BeforeValidator(none_if_false)] = None


class Exporters(Section):
    """The destinations of scores."""

    prometheus: Prometheus = Prometheus()

    @property
    def sinks(self) -> Mapping[str, Any]:
        """The options of each sink that is switched on, by its name."""
        names = type(self).model_fields.keys() - Exporters.model_fields.keys()
        options = {name: getattr(self, name) for name in sorted(names)}
        return {name: value for name, value in options.items() if value is not None}

    def __reduce__(self) -> tuple[Any, ...]:
        """The class cannot be imported by its name, which scorer processes would do."""
        return _rebuilt, (dict(self), self.model_fields_set)

    @classmethod
    def with_sections(cls) -> type[Exporters]:
        """The model with a section for each installed sink. Raises `PluginError`."""
        return _with_sinks(tuple((name, SINKS.get(name).options) for name in SINKS.names()))


def read_exporters(value: Json) -> Exporters:
    """Validate the section. Raises `pydantic.ValidationError` and `PluginError`."""
    return Exporters.with_sections().model_validate(value, extra="forbid")


def _rebuilt(values: Mapping[str, Any], written: set[str]) -> Exporters:
    return Exporters.with_sections().model_construct(written, **values)


@cache  # one model for the same sinks: configurations are equal only if their types are
def _with_sinks(sinks: tuple[tuple[str, type[Any]], ...]) -> type[Exporters]:
    reserved = sorted(Exporters.model_fields.keys() & {name for name, _ in sinks})
    if reserved:
        raise PluginError(f"an installed sink is called {reserved[0]!r}, a name of our own")
    sections: dict[str, Any] = {name: (_section(name, options), None) for name, options in sinks}
    return create_model("Exporters", __base__=Exporters, **sections)


def _section(name: str, options: type[Any]) -> Any:
    """The type of the section of one sink; `None` when it is off."""
    section: Any = Annotated[Optional[options], BeforeValidator(none_if_false)]  # noqa: UP045
    try:
        TypeAdapter(section)
    except PydanticUserError as error:
        text = f"the options of the sink {name!r} cannot be read: {error.message}"
        raise PluginError(text) from None
    return section
