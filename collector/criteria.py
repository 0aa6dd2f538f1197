"""Reads criteria: what people wrote under `criteria` comes in, `Criterion`s with their scorers built go out.

One criterion is a number (the threshold), or a mapping of `threshold`, `scorer` and the scorer's options, or empty (no threshold:
its scores are informational), or `false` (switched off). The mapping of ADK's `test_config.json` is understood as it stands:
option keys may be in camelCase.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from collector.documents import ConfigError, Document, KeyPath, Problem, Problems, show_value
from collector.documents.validation import problem
from collector.evaluator import Criterion
from collector.plugins import PluginError, build_scorer, scorer_class
from scorers.types import Json, Scorer

DEFAULTS: Mapping[str, Json] = {"failure": None, "latency": None}
"""The criteria of a configuration that names none: they need no reference and have no threshold."""

NOT_AVAILABLE = frozenset({
    "final_response_match_v2",
    "hallucinations_v1",
    "multi_turn_task_success_v1",
    "multi_turn_tool_use_quality_v1",
    "multi_turn_trajectory_quality_v1",
    "per_turn_user_simulator_quality_v1",
    "response_evaluation_score",
    "rubric_based_final_response_quality_v1",
    "rubric_based_multi_turn_trajectory_quality_v1",
    "rubric_based_tool_use_quality_v1",
    "safety_v1",
})  # fmt: skip
"""ADK criteria that ask a model to judge, which this version cannot."""

_OWN = ("threshold", "scorer")


@dataclass(frozen=True, slots=True)
class Place:
    """Where criteria stand: at `path` of a document."""

    document: Document
    path: KeyPath

    def problem(self, keys: KeyPath, text: str, *, of_key: bool = False) -> Problem:
        """A mistake at the `keys` below this place."""
        return self.document.problem((*self.path, *keys), text, of_key=of_key)


def lay_over(criteria: Mapping[str, Json], others: Mapping[str, Json]) -> dict[str, Json]:
    """The `criteria` with the `others` laid over them: a threshold replaces a threshold, an option an option, `false` all of it.

    A criterion that names its scorer starts anew.
    """
    laid = dict(criteria)
    for name, other in others.items():
        below, above = _parts(laid.get(name)), _parts(other)
        if name not in laid or below is None or above is None or "scorer" in above:
            laid[name] = other
        else:
            laid[name] = {**below, **above}
    return laid


def build(criteria: Mapping[str, Json], place: Place) -> tuple[Criterion, ...]:
    """Build all criteria that are not switched off. Raises `ConfigError` with every problem."""
    built: list[Criterion] = []
    problems = Problems()
    for name, written in criteria.items():
        with problems:
            if written is not False:
                built.append(_criterion(name, written, place))
    problems.report()
    return tuple(built)


def _criterion(name: str, written: Json, place: Place) -> Criterion:
    parts = _parts(written)
    if parts is None:
        text = f"found {show_value(written)}, expected a threshold (a number) or a mapping of threshold and options"
        raise ConfigError([place.problem((name,), text)])
    if written and isinstance(written, dict) and len(parts) < len(written):
        raise ConfigError([place.problem((name,), "found a key in camelCase and in snake_case, expected it once")])
    kind = _scorer_class(name, parts, place)
    found = list(_threshold_problems(name, parts, kind, place))
    scorer: Scorer | None = None
    try:
        scorer = build_scorer(kind, {key: value for key, value in parts.items() if key not in _OWN})
    except ValidationError as error:
        found += _option_problems(error, name, written, kind, place)
    except PluginError as error:
        found.append(place.problem((name,), str(error), of_key=True))
    if scorer is None or found:
        raise ConfigError(found)
    return Criterion(name, scorer, parts.get("threshold"))


def _scorer_class(name: str, parts: Mapping[str, Json], place: Place) -> type[Scorer]:
    """The scorer that a criterion names, or whose name it has."""
    keys: KeyPath = (name, "scorer") if "scorer" in parts else (name,)
    called = parts.get("scorer", name)
    if not isinstance(called, str):
        raise ConfigError([place.problem(keys, f"found {show_value(called)}, expected the name of a scorer")])
    try:
        return scorer_class(called)
    except PluginError as error:
        text = (
            f"found {called!r}, which needs a judge model and is not available in this version" if called in NOT_AVAILABLE else str(error)
        )
        raise ConfigError([place.problem(keys, text, of_key="scorer" not in parts)]) from error


def _threshold_problems(name: str, parts: Mapping[str, Json], kind: type[Scorer], place: Place) -> Iterator[Problem]:
    threshold = parts.get("threshold")
    if threshold is None or (_is_number(threshold) and kind.low <= threshold <= kind.high):
        return
    expected = f"a number from {kind.low:g} to {kind.high:g}" if math.isfinite(kind.high) else f"a number from {kind.low:g}"
    yield place.problem((name, "threshold"), f"found {show_value(threshold)}, expected {expected}")


def _option_problems(error: ValidationError, name: str, written: Json, kind: type[Scorer], place: Place) -> Iterator[Problem]:
    """What is wrong with the options, at the keys as they are spelled in the file."""
    spelled = {_snake(key): key for key in written} if isinstance(written, dict) else {}
    for details in error.errors(include_url=False):
        loc = tuple(spelled.get(str(step), step) for step in details["loc"][:1]) + details["loc"][1:]
        yield problem({**details, "loc": loc}, kind, place.document, (*place.path, name))


def _parts(written: Json) -> dict[str, Json] | None:
    """A criterion as a mapping with keys in snake_case; `None` when it is nothing that a criterion can be."""
    if written is None:
        return {}
    if _is_number(written):
        return {"threshold": written}
    return {_snake(key): value for key, value in written.items()} if isinstance(written, dict) else None


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf


def _snake(key: str) -> str:
    """`matchMode` as `match_mode`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower() if key.isidentifier() else key
