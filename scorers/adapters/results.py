"""What functions of other evaluation tools return comes in, a `Score` goes out.

A number, a boolean, `None` (nothing to judge), a `Score`, a value with its reason, or a dictionary
that holds one of these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

from pathgauge.scorers.types import Json, Score

_EXPLANATIONS = ("explanation", "reason", "comment")
"""The keys under which dictionaries explain themselves."""


def as_score(returned: Any, names: Sequence[str]) -> Score:
    """Read what a function returned; of a dictionary the entry under one of `names`, else its only
    number.

    Raises `TypeError` for what is no score.
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
    own = [name for name in names if name in returned]
    numbers = own or _numbers(returned)
    told = {
        key: value
        for key, value in returned.items()
        if value is not None and key not in _EXPLANATIONS
    }
    if (told and not numbers) or (len(numbers) > 1 and not own):
        raise TypeError(
            f"returned a dictionary of {', '.join(map(str, told))}, expected one number, or one"
            f" called {names[0]}"
        )
    score = as_score(returned[numbers[0]], names) if numbers else _explained(None, None)
    explanation = next(
        (returned[key] for key in _EXPLANATIONS if isinstance(returned.get(key), str)), None
    )
    return Score(
        score.value, score.reason, _line(explanation, score.explanation), _evidence(returned)
    )


def _numbers(returned: Mapping[Any, Any]) -> list[Any]:
    """The entries that may be the score: `score` if there is one, else numbers, else what is true
    or false.
    """
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


def _line(text: Any, otherwise: str) -> str:
    return (" ".join(text.split()) if isinstance(text, str) else "") or otherwise


def _evidence(returned: Mapping[Any, Any]) -> Mapping[str, Json]:
    """The dictionary as details, if it is JSON."""
    try:
        evidence: Mapping[str, Json] = json.loads(json.dumps(returned, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return {}
    return evidence
