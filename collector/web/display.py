"""Shows values to people: text of unknown origin, numbers with their units, and times.

Autoescape makes HTML harmless, but not characters that change how the text around them is read:
controls, and marks that reverse the direction. `visible` shows these as symbols.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

from pathgauge.scorers.matching.wording import plural
from pathgauge.scorers.types import Json

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls, marks of direction, separators, surrogates and other characters without a shape."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_YEAR_DAYS = 365


def visible(text: str) -> str:
    """The text with symbols for invisible characters."""
    return _INVISIBLE.sub(_symbol, text)


def shown(value: Json) -> Json:
    """What a template writes for a value; Jinja calls this for every one."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def exact(value: object) -> Markup:
    """The text as it is, for values of forms, which come back."""
    return escape(str(value).encode("utf-8", "replace").decode())


def cut(text: str, length: int) -> str:
    """The text in at most `length` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def number(value: float | None) -> str:
    """A score in at most three decimals, or two digits if it is smaller."""
    if value is None:
        return "–"
    if not math.isfinite(value) or 0 < abs(value) < 0.001:
        return f"{value:.2g}"
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.3f}".rstrip("0").rstrip(".")


def measured(value: float | None, criterion: str) -> str:
    """A score with the unit of its criterion, if it has one."""
    text, unit = number(value), UNITS.get(criterion)
    return text if unit is None or value is None else f"{text}\u00a0{unit}"


UNITS = {
    **dict.fromkeys(("latency", "model_time", "tool_time", "framework_time"), "s"),
    **dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), "tokens"),
    **dict.fromkeys(("tool_calls", "model_calls"), "calls"),
    "cost": "USD",
}
"""Units of scorers. Criteria have the name of their scorer, unless the configuration renames them;
scores without an entry are mostly shares from 0 to 1.
"""


def counted(count: int, noun: str) -> str:
    """For instance `1 run`, `1,200 runs`."""
    return f"{count:,} {plural(count, noun)}"


def duration(seconds: float | None) -> str:
    """Seconds, or milliseconds below one."""
    if seconds is None:
        return "not known"
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:,.2f} s"


def rarity(days: float) -> str:
    """How rarely something happens: so many days, or years."""
    if days >= 100 * _YEAR_DAYS:
        return "more than 100 years"
    if days >= 2 * _YEAR_DAYS:
        return f"{days / _YEAR_DAYS:.0f} years"
    return "less than a day" if days < 1 else counted(int(days), "day")


def moment(at: float | datetime) -> datetime:
    """A time in UTC, without fractions."""
    found = at if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return found.replace(microsecond=0)


def age(at: float | datetime, now: float) -> str:
    """How long ago it was, for instance `3 min ago`."""
    seconds = max(0.0, now - moment(at).timestamp())
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def _symbol(match: re.Match[str]) -> str:
    return f"‹U+{ord(match[0]):04X}›"


def tokens(count: int | None) -> str:
    """A number of tokens."""
    return "unknown" if count is None else f"{count:,}"
