"""The section of the configuration about what is taken out of telemetry before anything is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from pathgauge.collector.config.section import Section
from pathgauge.collector.core import redaction
from pathgauge.collector.core.documents.quantities import Switch
from pathgauge.scorers.types import Json

_SHORTEST_SALT = 16


def _text(value: Json) -> Json:
    """A plain number is one that an environment variable gave."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class KeyRule(Section):
    """An action for the values of all attributes that a glob pattern matches."""

    match: Annotated[str, Field(min_length=1)]
    action: redaction.Action


class Detectors(Section):
    """What becomes of what is found by its form."""

    token: redaction.Action = "mask"
    email: redaction.Action = "mask"
    card: redaction.Action = "mask"
    phone: redaction.Action = "mask"


class Redacted(Section):
    """What a tenant's telemetry is relieved of; `None` is what holds for everybody."""

    attributes: tuple[KeyRule, ...] = ()
    detectors: Detectors = Detectors()
    content: Switch | None = None


class Redaction(Section):
    """What is taken out of telemetry before anything is kept. Without this section nothing is."""

    attributes: tuple[KeyRule, ...] = ()
    detectors: Detectors = Detectors()
    content: Switch = True
    salt: Annotated[str | None, BeforeValidator(_text)] = None
    """Of hashes. Without one, equal values hash alike within one run of the process only."""
    tenants: dict[str, Redacted] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _salt_is_long(self) -> Redaction:
        if (
            self.salt is not None and len(self.salt) < _SHORTEST_SALT
        ):  # not shown, as it is a secret
            raise ValueError(
                f"found a short salt, expected {_SHORTEST_SALT} characters or more, such as"
                " `openssl rand -hex 16` gives"
            )
        return self

    def rules(self) -> redaction.Rules:
        """What holds for tenants without rules of their own."""
        return _rules(self.attributes, self.detectors.model_dump(), content=self.content)

    def rules_of_tenants(self) -> dict[str, redaction.Rules]:
        """What holds for the others: their own rules laid over those of everybody."""
        common = self.detectors.model_dump()
        return {
            name: _rules(
                own.attributes + self.attributes,
                common | own.detectors.model_dump(exclude_unset=True),
                content=self.content if own.content is None else own.content,
            )
            for name, own in self.tenants.items()
        }


def _rules(
    attributes: Iterable[KeyRule], detectors: Mapping[str, Any], *, content: bool
) -> redaction.Rules:
    return redaction.Rules(
        tuple(redaction.KeyRule(rule.match, rule.action) for rule in attributes),
        dict(detectors),
        content,
    )
