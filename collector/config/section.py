"""The base model of all sections: unknown keys are errors, and empty sections have defaults."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, model_validator

from pathgauge.scorers.types import Json


class Section(BaseModel):
    """A mapping in the configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, value: Json) -> Json:
        return default_if_empty(value)


class SecretSection(Section):
    """A section that may hold secrets."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_text(cls, value: Json) -> Json:
        return not_text(value)


def default_if_empty(value: Json) -> Json:
    """An empty mapping for a section without a value, as in the OpenTelemetry Collector."""
    return {} if value is None else value


def not_text(value: Json) -> Json:
    """Refuse text in place of a mapping that may hold secrets. The text is not quoted: it may be
    such a secret, or an address with a password.
    """
    if isinstance(value, str):
        raise ValueError("found text, expected a mapping")
    return value


def none_if_false(value: Json) -> Json:
    """`None` for a section that `false` switches off; empty sections have their defaults."""
    if value is False:
        return None
    if isinstance(value, str | int | float | list):
        raise ValueError("a mapping, or false")
    return default_if_empty(value)
