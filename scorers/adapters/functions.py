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
import math
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, make_dataclass
from functools import partial
from typing import Any, ClassVar, cast

from pathgauge.scorers.adapters.adk_metric import adk_metric_class, is_adk_metric
from pathgauge.scorers.adapters.inputs import SHAPES, NotKnownError, Shape, shaped
from pathgauge.scorers.adapters.results import as_score
from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score, Scorer

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
_SCENARIO = "scenario"
"""Option of checks that take a scenario: entries that override those of the reference."""

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Check:
    """A function or an evaluator class, and how to call it."""

    names: tuple[str, ...]
    """The name of the scorer, and the name of the function in its code."""
    target: Any
    receives: tuple[tuple[str, Shape], ...]
    """The parameters that receive the invocation, the reference or parts of them."""
    options: tuple[str, ...]

    def bound(self, options: Mapping[str, Any]) -> Callable[..., Any]:
        """The function with these options."""
        if inspect.isclass(self.target):
            evaluator: Any = self.target(**options)
            return cast(Callable[..., Any], evaluator.evaluate)
        return partial(self.target, **options)


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckScorer:
    """A check as a scorer. Each check has its own subclass, whose additional fields are the options
    of the check.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool]
    needs_turn: ClassVar[bool]
    check: ClassVar[Check]

    low: float = 0.0
    """The lowest value that the check can return."""
    high: float = 1.0
    """The highest value that the check can return."""
    higher_is_better: bool = True
    """If true, values from the threshold up pass; else values up to the threshold."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and self.low < self.high):
            raise ValueError(
                f"high: found {self.high:g}, expected more than low, which is {self.low:g}"
            )
        if vars(self).get(_SCENARIO) is not None:
            object.__setattr__(self, "needs_reference", self.needs_turn)
        try:
            self.check.bound(self._options)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the constructor of an evaluator is third-party code
            raise ValueError(f"{type(error).__name__}: {error}") from error

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CheckScorer)
            and self.check == other.check
            and vars(self) == vars(other)
        )

    def __hash__(self) -> int:
        return hash(self.check)  # options may be lists, which have no hash

    @property
    def _options(self) -> dict[str, Any]:
        """Copies, because a function may modify its arguments."""
        return {name: deepcopy(getattr(self, name)) for name in self.check.options}

    @property
    def _scenario_entries(self) -> Mapping[str, Any]:
        return deepcopy(vars(self).get(_SCENARIO)) or {}

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Call the check. Exceptions of the check are not caught. Raises `TypeError` if it returns
        something that is not a score.
        """
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference", "no reference")
        received = {
            name: shaped(shape, actual, expected, self._scenario_entries)
            for name, shape in self.check.receives
        }
        try:
            returned = self.check.bound(self._options)(**received)
        except NotKnownError as unknown:
            return Score.not_evaluated(unknown.reason, f"{unknown.key} is not known")
        return as_score(returned, self.check.names)


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
        fields.append((_SCENARIO, dict[str, Any] | None, field(default=None)))
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
