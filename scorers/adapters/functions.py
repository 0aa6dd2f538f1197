"""Checks that people already have, as scorers: a function or an evaluator class comes in, a scorer
goes out.

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

A parameter that is called like a shape of `pathgauge.scorers.adapters.inputs` receives it. All
others are options; those of an evaluator class are the parameters of its constructor.
`pathgauge.scorers.adapters.results` says what may be returned.
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

from pathgauge.scorers.adapters.inputs import SHAPES, NotKnownError, Shape, shaped
from pathgauge.scorers.adapters.results import as_score
from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score, Scorer

_CHECKED: Mapping[str, type] = {kind.__name__: kind for kind in (bool, int, float, str)}
"""Annotations that the options of a configuration are checked against; under any other an option
may be anything.
"""

_RESERVED = frozenset({
    *("name", "version", "needs_reference", "needs_turn", "check", "low", "high", "higher_is_better", "score"),
    *("threshold", "scorer", "takes", "agent", "view"),
})  # fmt: skip
"""What every scorer, or every criterion of a configuration, has under such a name; so no option
can.
"""

_SHAPES: Mapping[str, Shape] = {shape: shape for shape in SHAPES}
_SCENARIOS: frozenset[Shape] = frozenset({"scenario", "scenarios"})
_SCENARIO = "scenario"
"""The option of checks that take a scenario: entries laid over those that the reference has."""

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class Check:
    """A function, or the class of an evaluator, and how it is called."""

    names: tuple[str, ...]
    """The name of the scorer, and the one that the function has in its code."""
    target: Any
    receives: tuple[tuple[str, Shape], ...]
    """The parameters that receive what is scored."""
    options: tuple[str, ...]

    def bound(self, options: Mapping[str, Any]) -> Callable[..., Any]:
        """The function with its options given."""
        if inspect.isclass(self.target):
            evaluator: Any = self.target(**options)
            return cast(Callable[..., Any], evaluator.evaluate)
        return partial(self.target, **options)


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckScorer:
    """A check as a scorer. Every check has a subclass of its own, whose further fields are its
    options.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool]
    needs_turn: ClassVar[bool]
    check: ClassVar[Check]

    low: float = 0.0
    """The lowest value that the check returns."""
    high: float = 1.0
    """The highest."""
    higher_is_better: bool = True
    """Whether a threshold is the least value that passes, or the greatest."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and self.low < self.high):
            raise ValueError(
                f"high: found {self.high:g}, expected more than low, which is {self.low:g}"
            )
        if vars(self).get(_SCENARIO) is not None:
            object.__setattr__(self, "needs_reference", self.needs_turn)
        try:
            self.check.bound(self._options)
        except Exception as error:  # the constructor of an evaluator is foreign code
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
        """Copies, as a function may change what it is given."""
        return {name: deepcopy(getattr(self, name)) for name in self.check.options}

    @property
    def _in_scenario(self) -> Mapping[str, Any]:
        return deepcopy(vars(self).get(_SCENARIO)) or {}

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Call the check. Raises whatever it raises, and `TypeError` when it returns no score."""
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference", "no reference")
        received = {
            name: shaped(shape, actual, expected, self._in_scenario)
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
    """A scorer that calls a function, or the `evaluate` of an evaluator or of its class, with these
    options.

    `takes` says what the first parameters receive where their names do not. Raises `ValueError` for
    what cannot be called like that, and `TypeError` for an option that it does not have.
    """
    kind: Any = scorer_class(function, takes, name)
    scorer: Scorer = kind(low=low, high=high, higher_is_better=higher_is_better, **options)
    return scorer


def scorer_class(found: Any, takes: Sequence[str] = (), name: str | None = None) -> type[Scorer]:
    """The class of the scorers that call `found`; its fields are the options. Raises `ValueError`
    for what cannot be called.
    """
    if inspect.isclass(found):
        target, given, asked = (
            found,
            _parameters(found),
            _parameters(getattr(found, "evaluate", None))[1:],
        )
    else:
        target = getattr(found, "evaluate", found)
        given = asked = _parameters(target)
    receives = _receives(asked, takes)
    options = [
        parameter for parameter in given if parameter.name not in receives and _is_option(parameter)
    ]
    named = getattr(found, "__name__", type(found).__name__)
    check = Check(
        (name or _snake_case(named), named),
        target,
        tuple(receives.items()),
        tuple(option.name for option in options),
    )
    needs_turn = any(
        receives.get(parameter.name) == "turn" and _is_required(parameter) for parameter in asked
    )
    declared = {
        "name": check.names[0],
        "check": check,
        "needs_turn": needs_turn,
        "needs_reference": needs_turn,
    }
    factories = _factories(target)
    made = [_field(option, factories) for option in options]
    if not _SCENARIOS.isdisjoint(receives.values()):
        declared["needs_reference"] = True
        made.append((_SCENARIO, dict[str, Any] | None, field(default=None)))
    declared["__doc__"] = inspect.getdoc(found) or f"The function {named}."
    kind: type[Scorer] = make_dataclass(
        named, made, bases=(CheckScorer,), namespace=declared, frozen=True, kw_only=True, eq=False
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
            "found async def, expected def: a scorer runs while traffic waits, and cannot wait"
            " itself"
        )
    return [*inspect.signature(function).parameters.values()]


def _receives(parameters: Sequence[inspect.Parameter], takes: Sequence[str]) -> dict[str, Shape]:
    """What parameters receive: the first ones as `takes` says, the others as they are called."""
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
            " or takes to say what they receive"
        )
    return receives


def _is_option(parameter: inspect.Parameter) -> bool:
    """Whether people can give a value to a parameter. Raises `ValueError` when they cannot, and
    have to.
    """
    if parameter.kind in _ANY_NUMBER:
        return False
    usable = (
        parameter.kind in _BY_NAME
        and parameter.name not in _RESERVED
        and not parameter.name.startswith("_")
    )
    if not usable and _is_required(parameter):
        raise ValueError(
            f"found the parameter {parameter.name!r} without a default, expected one by another"
            " name, which an option can have"
        )
    return usable


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty


def _factories(target: Any) -> Mapping[str, Any]:
    """What makes the defaults of an evaluator that has a new one for each object; its signature
    does not tell.
    """
    if not (inspect.isclass(target) and is_dataclass(target)):
        return {}
    return {
        option.name: option.default_factory
        for option in fields(target)
        if option.default_factory is not MISSING
    }


def _field(option: inspect.Parameter, factories: Mapping[str, Any]) -> tuple[str, Any, Any]:
    annotation = (
        option.annotation
        if isinstance(option.annotation, str)
        else getattr(option.annotation, "__name__", "")
    )
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
    words = (
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"[^A-Za-z0-9_]", "", name))
        .lower()
        .lstrip("_0123456789")
    )
    return words or "check"
