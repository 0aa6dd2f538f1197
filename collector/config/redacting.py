"""The section `redaction`: what is removed from telemetry before anything is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from pathgauge.collector.config.section import Section
from pathgauge.collector.core import redaction
from pathgauge.collector.core.documents.quantities import Switch
from pathgauge.scorers.types import Json

_MIN_SALT_CHARS = 16


def _text(value: Json) -> Json:
    """Accept a plain number: an environment variable of digits is read as one."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class KeyRule(Section):
    """An action for the values of all attributes whose keys match a glob pattern."""

    match: Annotated[str, Field(min_length=1)]
    action: redaction.Action


class Detectors(Section):
    """The action for each kind of secret that is detected by its form."""

    token: redaction.Action = "mask"
    email: redaction.Action = "mask"
    card: redaction.Action = "mask"
    phone: redaction.Action = "mask"


class Redacted(Section):
    """The rules of one tenant. `None` means that the common rule applies."""

    attributes: tuple[KeyRule, ...] = ()
    detectors: Detectors = Detectors()
    content: Switch | None = None


class Redaction(Section):
    """What is removed before anything is stored. Without this section, nothing is removed."""

    attributes: tuple[KeyRule, ...] = ()
    detectors: Detectors = Detectors()
    content: Switch = True
    salt: Annotated[str | None, BeforeValidator(_text)] = None
    """For hashes. Without a salt, equal values have equal hashes only until the process ends."""
    tenants: dict[str, Redacted] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _salt_is_long(self) -> Redaction:
        if self.salt is not None and len(self.salt) < _MIN_SALT_CHARS:
            # The salt is a secret, so the message does not quote it.
            raise ValueError(
                f"found a short salt, expected at least {_MIN_SALT_CHARS} characters, such as the"
                " output of `openssl rand -hex 16`"
            )
        return self

    def hashes(self) -> bool:
        """Whether anything is replaced by its hash."""
        of_tenants = self.rules_of_tenants().values()
        return any(
            "hash" in (*rules.detectors.values(), *(key.action for key in rules.attributes))
            for rules in (self.rules(), *of_tenants)
        )

    def rules(self) -> redaction.Rules:
        """The rules for tenants that have none of their own."""
        return _rules(self.attributes, self.detectors.model_dump(), content=self.content)

    def rules_of_tenants(self) -> dict[str, redaction.Rules]:
        """The rules of the other tenants: their own, merged with the common ones."""
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
