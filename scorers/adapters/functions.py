"""Turns an existing function or evaluator class into a scorer.

    # a metric function of Vertex AI
    def essential_tools_present(instance, required_tools=("search_web",)): ...
    # a check of what an agent returned
    def eval_escalation(result, scenario): ...
    # on the values of this package
    def answers_briefly(invocation, turn, max_words=50): ...

    @dataclass
    # an evaluator of pydantic-evals
    class Mentions:
        word: str
        def evaluate(self, ctx): ...

    # a metric function of Google's ADK, see `adk_metric`
    def brevity(eval_metric, actual_invocations, expected_invocations=None): ...

A parameter named like a shape of `pathgauge.scorers.adapters.inputs` receives that shape. All other
parameters are options; those of an evaluator class are the parameters of its constructor.
`pathgauge.scorers.adapters.results` defines what may be returned.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import MISSING, field, fields, is_dataclass, make_dataclass
from functools import partial
from typing import Any

from pathgauge.scorers.adapters.adk_metric import adk_metric_class, is_adk_metric
from pathgauge.scorers.adapters.check_scorer import SCENARIO, Check, CheckScorer
from pathgauge.scorers.adapters.inputs import SHAPES, Shape
from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.types import Scorer

_CHECKED: Mapping[str, type] = {kind.__name__: kind for kind in (bool, int, float, str)}
"""Annotations by which options in a configuration are validated. With any other annotation, an
option accepts any value.
"""

_SCORER_ATTRIBUTES = (
    "name",
    "version",
    "needs_reference",
    "needs_turn",
    "check",
    "low",
    "high",
    "higher_is_better",
    "score",
)
_CRITERION_KEYS = ("threshold", "scorer", "takes", "agent", "view")
_RESERVED = frozenset({*_SCORER_ATTRIBUTES, *_CRITERION_KEYS})
"""Names that options cannot have."""

_SHAPES: Mapping[str, Shape] = {shape: shape for shape in SHAPES}
_SCENARIOS: frozenset[Shape] = frozenset({"scenario", "scenarios"})

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def from_function(
    function: Any,
    *,
    name: str | None = None,
    takes: Sequence[str] = (),
    low: float = 0.0,
    high: float = 1.0,
    higher_is_better: bool = True,
    **options: Any,
) -> Scorer:
    """A scorer that calls a function, or the method `evaluate` of an evaluator or evaluator class,
    with these options.

    `takes` lists what the first parameters receive, if their names do not tell. Raises `ValueError`
    if `function` cannot be called like that, and `TypeError` for an unknown option.
    """
    kind: Any = scorer_class(function, takes, name)
    scorer: Scorer = kind(low=low, high=high, higher_is_better=higher_is_better, **options)
    return scorer


def scorer_class(found: Any, takes: Sequence[str] = (), name: str | None = None) -> type[Scorer]:
    """The class of scorers that call `found`. Its fields are the options. Raises `ValueError` if
    `found` cannot be called.
    """
    if inspect.isclass(found):
        target = found
        constructor = _parameters(found)
        parameters = _parameters(getattr(found, "evaluate", None))[1:]
    else:
        target = getattr(found, "evaluate", found)
        constructor = parameters = _parameters(target)
    class_name = getattr(found, "__name__", type(found).__name__)
    if not inspect.isclass(found) and is_adk_metric(parameters):
        return adk_metric_class(target, name or _snake_case(class_name), parameters)
    receives = _receives(parameters, takes)
    options = [
        parameter
        for parameter in constructor
        if parameter.name not in receives and _is_option(parameter)
    ]
    check = Check(
        (name or _snake_case(class_name), class_name),
        target,
        tuple(receives.items()),
        tuple(option.name for option in options),
    )
    needs_turn = any(
        receives.get(parameter.name) == "turn" and _is_required(parameter)
        for parameter in parameters
    )
    takes_scenario = not _SCENARIOS.isdisjoint(receives.values())
    attributes = {
        "__doc__": inspect.getdoc(found) or f"The function {class_name}.",
        "name": check.names[0],
        "check": check,
        "needs_turn": needs_turn,
        "needs_reference": needs_turn or takes_scenario,
    }
    return _scorer_class(class_name, attributes, options, takes_scenario)


def _scorer_class(
    class_name: str,
    attributes: dict[str, Any],
    options: Sequence[inspect.Parameter],
    takes_scenario: bool,
) -> type[Scorer]:
    factories = _factories(attributes["check"].target)
    fields = [_field(option, factories) for option in options]
    if takes_scenario:
        fields.append((SCENARIO, dict[str, Any] | None, field(default=None)))
    kind: type[Scorer] = make_dataclass(
        class_name,
        fields,
        bases=(CheckScorer,),
        namespace=attributes,
        frozen=True,
        kw_only=True,
        eq=False,
    )
    return kind


def _parameters(function: Any) -> list[inspect.Parameter]:
    if not callable(function):
        raise ValueError(
            f"found {type(function).__name__}, expected a function, or a class with a method"
            " evaluate"
        )
    if inspect.iscoroutinefunction(function):
        raise ValueError(
            "found async def, expected def: a scorer runs while traffic waits, so it must not wait"
        )
    return [*inspect.signature(function).parameters.values()]


def _receives(parameters: Sequence[inspect.Parameter], takes: Sequence[str]) -> dict[str, Shape]:
    """The shape that each parameter receives: the first ones by `takes`, the others by name."""
    for shape in takes:
        check_choice("takes", shape, SHAPES)
    names = [parameter.name for parameter in parameters if parameter.kind in _BY_NAME]
    if len(takes) > len(names):
        raise ValueError(
            f"takes: found {len(takes)} shapes, expected at most {len(names)}, one for each"
            " parameter"
        )
    receives = {name: _SHAPES[name] for name in names if name in _SHAPES}
    receives |= {name: _SHAPES[shape] for name, shape in zip(names, takes, strict=False)}
    if not receives:
        raise ValueError(
            f"found the parameters ({', '.join(names)}), expected one called {', '.join(SHAPES)},"
            " or the option takes with what they receive"
        )
    return receives


def _is_option(parameter: inspect.Parameter) -> bool:
    """Whether a parameter can be an option. Raises `ValueError` if it cannot, but needs a value."""
    if parameter.kind in _ANY_NUMBER:
        return False
    usable = (
        parameter.kind in _BY_NAME
        and parameter.name not in _RESERVED
        and not parameter.name.startswith("_")
    )
    if not usable and _is_required(parameter):
        raise ValueError(
            f"found the parameter {parameter.name!r} without a default, expected another name,"
            " because no option can have this one"
        )
    return usable


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty


def _factories(target: Any) -> Mapping[str, Any]:
    """The default factories of an evaluator that is a dataclass; its signature has none."""
    if not (inspect.isclass(target) and is_dataclass(target)):
        return {}
    return {
        option.name: option.default_factory
        for option in fields(target)
        if option.default_factory is not MISSING
    }


def _field(option: inspect.Parameter, factories: Mapping[str, Any]) -> tuple[str, Any, Any]:
    annotation = option.annotation
    if not isinstance(annotation, str):
        annotation = getattr(annotation, "__name__", "")
    kind = _CHECKED.get(annotation, Any)
    if _is_required(option):
        return option.name, kind, field()
    if option.name in factories:
        return option.name, kind, field(default_factory=factories[option.name])
    if type(option.default).__hash__ is None:
        return option.name, kind, field(default_factory=partial(deepcopy, option.default))
    return option.name, kind, field(default=option.default)


def _snake_case(name: str) -> str:
    """`EqualsExpected` as `equals_expected`, and `<lambda>` as `lambda`."""
    identifier = re.sub(r"[^A-Za-z0-9_]", "", name)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier)
    return words.lower().lstrip("_0123456789") or "check"
