"""Renders the templates: everything is escaped, and an unknown name is an error."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from pathgauge.collector.web import display, links
from pathgauge.collector.web.static_files import address
from pathgauge.collector.web.wording import (
    DRIFTS,
    FLAGS,
    MARKS,
    MISSES,
    STATES,
    reason_text,
    verdict_text,
)

_ENVIRONMENT = Environment(
    loader=PackageLoader("pathgauge.collector.web"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    finalize=display.shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(
    age=display.age,
    counted=display.counted,
    cut=display.cut,
    duration=display.duration,
    exact=display.exact,
    measured=display.measured,
    moment=display.moment,
    number=display.number,
    rarity=display.rarity,
    reason=reason_text,
    tokens=display.tokens,
    verdict=verdict_text,
)
_ENVIRONMENT.globals.update(
    address=address,
    links=links,
    DRIFTS=DRIFTS,
    FLAGS=FLAGS,
    MARKS=MARKS,
    MISSES=MISSES,
    STATES=STATES,
)


def render(template: str, **values: Any) -> bytes:
    """The page as HTML."""
    text = _ENVIRONMENT.get_template(template).render(values)
    return text.encode("utf-8", "replace")
