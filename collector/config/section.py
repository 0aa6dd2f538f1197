"""What all sections of the configuration share: unknown keys are mistakes, and a section without a
value means its defaults.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, model_validator

from pathgauge.scorers.types import Json


class Section(BaseModel):
    """A mapping of the file; keys that it does not know are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, value: Json) -> Json:
        return empty(value)


def empty(value: Json) -> Json:
    """A section without a value means its defaults, as in the OpenTelemetry Collector."""
    return {} if value is None else value


def off(value: Json) -> Json:
    """`false` switches a section off."""
    return None if value is False else empty(value)
