"""Whether a tool span may be the call that a model asked for, by the arguments of both.

A span that executed the call may have more arguments than the model wrote: defaults, and what the
framework adds. It may have them as other types, or as text without names. What certainly was not
asked for is another value of the same type under the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from typing import Any

from pathgauge.collector.core.invocations.messages.values import PLACEHOLDERS
from pathgauge.collector.core.reading_budget import spend


def are_equal(asked: Any, executed: Any) -> bool:
    """Whether both are recorded and the same; text without a name may be the only argument."""
    if executed is None or asked is None:
        return False
    if isinstance(executed, str) and isinstance(asked, dict):
        return list(asked.values()) == [executed]
    return bool(asked == executed)


def contradict(asked: Any, executed: Any) -> bool:
    """Whether the span certainly carried out another call."""
    spend()
    if not isinstance(asked, dict) or not isinstance(executed, dict):
        return False
    return any(key in executed and _differ(value, executed[key]) for key, value in asked.items())


def _differ(asked: Any, executed: Any) -> bool:
    match asked, executed:
        case bool(), bool():
            return asked is not executed
        case (bool(), _) | (_, bool()):
            return False
        case int() | float(), int() | float():
            return not isclose(asked, executed)
        case str(), str():
            return _texts_differ(asked, executed)
        case dict(), dict():
            return _objects_differ(asked, executed)
        case list(), list():
            return len(asked) != len(executed) or any(map(_differ, asked, executed))
        case _:
            return False


def _objects_differ(asked: Mapping[str, Any], executed: Mapping[str, Any]) -> bool:
    return any(key in executed and _differ(value, executed[key]) for key, value in asked.items())


def _texts_differ(asked: str, executed: str) -> bool:
    """One may be truncated or removed."""
    if asked in PLACEHOLDERS or executed in PLACEHOLDERS:
        return False
    return not asked.startswith(executed) and not executed.startswith(asked)
