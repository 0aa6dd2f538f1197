"""Turns a metric function of Google's ADK into a scorer.

    def brevity(eval_metric, actual_invocations, expected_invocations=None,
                conversation_scenario=None) -> EvaluationResult: ...

ADK calls it with all invocations of a case, this scorer with one. The scores of a conversation are
averaged afterwards.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

from pathgauge.scorers.adapters.adk_values import (
    actual_invocation,
    eval_metric,
    expected_invocation,
)
from pathgauge.scorers.adapters.known import NotKnownError
from pathgauge.scorers.matching.wording import one_line
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score, Scorer

_FIRST = ("eval_metric", "actual_invocations")
_EXPECTED = "expected_invocations"
_RANGE = ("low", "high", "higher_is_better")


def is_adk_metric(parameters: Sequence[inspect.Parameter]) -> bool:
    """Whether a function has the signature of ADK's metric functions, by its parameters' names."""
    return {parameter.name for parameter in parameters}.issuperset(_FIRST)


@dataclass(frozen=True, kw_only=True, eq=False)
class AdkMetric:
    """A metric function as a scorer. Each function has its own subclass."""

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool]
    function: ClassVar[Any]
    takes: ClassVar[tuple[str, ...]]
    """The names of the parameters."""

    low: float = 0.0
    """The lowest value that the function can return."""
    high: float = 1.0
    """The highest value that the function can return."""
    higher_is_better: bool = True
    """If true, values from the threshold up pass; else values up to the threshold."""
    metric_name: str = ""
    """The name of the metric in `eval_metric`; by default that of the function."""
    criterion: Any = None
    """The criterion in `eval_metric`: a mapping of threshold and options."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and self.low < self.high):
            raise ValueError(
                f"high: found {self.high:g}, expected more than low, which is {self.low:g}"
            )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(type(self))  # the criterion may contain lists, which have no hash

    @classmethod
    def options_of(cls, name: str, threshold: Json, options: Mapping[str, Json]) -> dict[str, Json]:
        """The options of the scorer, given a criterion of a configuration."""
        own = {key: value for key, value in options.items() if key in _RANGE}
        criterion = {key: value for key, value in options.items() if key not in _RANGE}
        if threshold is not None:
            criterion["threshold"] = threshold
        return {**own, "metric_name": name, "criterion": criterion or None}

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Call the function. Exceptions of the function are not caught. Raises `TypeError` if it
        returns no `EvaluationResult`.
        """
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference", "no reference")
        arguments = {
            "eval_metric": eval_metric(self.metric_name or self.name, deepcopy(self.criterion)),
            "actual_invocations": [actual_invocation(actual)],
            _EXPECTED: None if expected is None else [expected_invocation(expected)],
            "conversation_scenario": None,
        }
        try:
            returned = type(self).function(**{name: arguments[name] for name in self.takes})
        except NotKnownError as unknown:
            return Score.not_evaluated(unknown.reason, f"{unknown.key} is not known")
        return _score(returned)


def adk_metric_class(function: Any, name: str, parameters: list[inspect.Parameter]) -> type[Scorer]:
    """The class of scorers that call `function`. Raises `ValueError` if it has a parameter that ADK
    does not pass.
    """
    known = (*_FIRST, _EXPECTED, "conversation_scenario")
    required = [one for one in parameters if one.default is one.empty]
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    for parameter in required:
        if parameter.kind in named and parameter.name not in known:
            raise ValueError(
                f"found the parameter {parameter.name!r}, expected those of ADK: {', '.join(known)}"
            )
    attributes = {
        "__doc__": inspect.getdoc(function) or f"ADK's metric function {name}.",
        "name": name,
        "function": staticmethod(function),
        "takes": tuple(one.name for one in parameters if one.name in known),
        "needs_reference": any(one.name == _EXPECTED for one in required),
    }
    kind: type[Scorer] = type(name, (AdkMetric,), attributes)
    return kind


def _score(returned: Any) -> Score:
    if not hasattr(returned, "overall_score"):
        raise TypeError(
            f"returned {type(returned).__name__}, expected an EvaluationResult with overall_score"
        )
    results = list(getattr(returned, "per_invocation_results", None) or ())
    value = returned.overall_score
    status = _status(getattr(returned, "overall_eval_status", None))
    if value is None and len(results) == 1:
        value = getattr(results[0], "score", None)
        status = _status(getattr(results[0], "eval_status", None))
    if value is None:
        if status in ("PASSED", "FAILED"):
            raise TypeError(f"returned the status {status} without a score, expected overall_score")
        return Score.not_evaluated("not_applicable", "the metric gave no score")
    return Score(float(value), None, _explanation(results) or f"returned {value}")


def _status(status: Any) -> str:
    """The name of an `EvalStatus`."""
    return str(getattr(status, "name", status))


def _explanation(results: Sequence[Any]) -> str:
    rationales = (
        getattr(rubric, "rationale", None)
        for result in results
        for rubric in getattr(result, "rubric_scores", None) or ()
    )
    return one_line(" ".join(text for text in rationales if isinstance(text, str)))
