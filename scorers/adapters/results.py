"""Converts the results of functions written for other evaluation tools into a `Score`.

A result is a number, a boolean, `None` (nothing to evaluate), a `Score`, a value with a reason, or
a dictionary that contains one of these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

from pathgauge.scorers.matching.wording import one_line
from pathgauge.scorers.types import Json, Score

_EXPLANATIONS = ("explanation", "reason", "comment")
"""Keys of dictionaries whose text explains the value."""


def as_score(returned: Any, names: Sequence[str]) -> Score:
    """The score that a function returned. In a dictionary it is the entry under one of `names`,
    else the only number. Raises `TypeError` if there is none.
    """
    if isinstance(returned, Score):
        return returned
    if isinstance(returned, Mapping):
        return _entry(returned, names)
    if isinstance(returned, tuple) and len(returned) == 2:
        return _explained(*returned)
    if hasattr(returned, "value") and hasattr(returned, "reason"):
        return _explained(returned.value, returned.reason)
    return _explained(returned, None)


def _entry(returned: Mapping[Any, Any], names: Sequence[str]) -> Score:
    named = [name for name in names if name in returned]
    candidates = named or _numbers(returned)
    keys = [
        key for key, value in returned.items() if value is not None and key not in _EXPLANATIONS
    ]
    if (keys and not candidates) or (len(candidates) > 1 and not named):
        raise TypeError(
            f"returned a dictionary of {', '.join(map(str, keys))}, expected one number, or one"
            f" called {names[0]}"
        )
    score = as_score(returned[candidates[0]], names) if candidates else _explained(None, None)
    texts = (returned[key] for key in _EXPLANATIONS if isinstance(returned.get(key), str))
    explanation = _line(next(texts, None), score.explanation)
    return Score(score.value, score.reason, explanation, _details(returned))


def _numbers(returned: Mapping[Any, Any]) -> list[Any]:
    """The keys that may hold the score: `score` if it exists, else numbers, else booleans."""
    found = [key for key, value in returned.items() if _is_number(value)]
    if "score" in found:
        return ["score"]
    return [key for key in found if not isinstance(returned[key], bool)] or found


def _explained(value: Any, reason: Any) -> Score:
    if value is None:
        return Score.not_evaluated("not_applicable", _line(reason, "nothing to judge"))
    if not isinstance(value, SupportsFloat):
        raise TypeError(
            f"returned {type(value).__name__}, expected a number, true or false, a dictionary or"
            " None"
        )
    return Score(float(value), None, _line(reason, f"returned {value}"))


def _is_number(value: Any) -> bool:
    return isinstance(value, SupportsFloat) or (
        hasattr(value, "value") and hasattr(value, "reason")
    )


def _line(text: Any, default: str) -> str:
    if not isinstance(text, str):
        return default
    return one_line(text) or default


def _details(returned: Mapping[Any, Any]) -> Mapping[str, Json]:
    """The dictionary as details if it is JSON, else no details."""
    try:
        details: Mapping[str, Json] = json.loads(json.dumps(returned, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return {}
    return details
