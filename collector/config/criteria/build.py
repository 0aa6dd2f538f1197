"""Builds `Criterion`s, and reports every mistake in them at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from pydantic import ValidationError

from pathgauge.collector.config.criteria import aggregating, objectives
from pathgauge.collector.config.criteria.aliases import without_alias
from pathgauge.collector.config.criteria.members import MemberReader
from pathgauge.collector.config.criteria.syntax import (
    COMMON_KEYS,
    Location,
    affected,
    is_number,
    normalized,
    snake_case,
)
from pathgauge.collector.config.plugins.registry import PluginError
from pathgauge.collector.config.plugins.scorers import build_scorer, scorer_class
from pathgauge.collector.core.documents import (
    ConfigError,
    KeyPath,
    Problem,
    Problems,
    did_you_mean,
    show_value,
)
from pathgauge.collector.core.documents.validation import problem
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.adapters.adk_metric import AdkMetric
from pathgauge.scorers.adapters.inputs import SHAPES
from pathgauge.scorers.composite.agent_view import VIEWS, OfAgent
from pathgauge.scorers.composite.composite import CostOfPassed, OfCriteria
from pathgauge.scorers.composite.intermediate_texts import (
    INCLUDE_INTERMEDIATE,
    WithIntermediateTexts,
)
from pathgauge.scorers.cost.cost import Cost
from pathgauge.scorers.session_protocol import scores_sessions
from pathgauge.scorers.sessions.mean_of_turns import MeanOfTurns, ScoredCriterion
from pathgauge.scorers.types import Json, Scorer

NOT_AVAILABLE = frozenset({"per_turn_user_simulator_quality_v1"})
"""ADK criteria for simulated users. This version has no scorer for them."""


def build(
    criteria: Mapping[str, Json],
    location: Location,
    changed: Iterable[str] | None = None,
    prices: Mapping[str, Json] | None = None,
) -> tuple[Criterion, ...]:
    """Build the criteria that are not switched off. With `changed`, only those and the criteria
    made of them. `prices` are those of criteria without prices of their own.

    Raises `ConfigError` with every problem.
    """
    built: list[Criterion] = []
    builder, problems = _Builder(criteria, location, prices or {}), Problems()
    for name in criteria if changed is None else affected(criteria, changed):
        with problems:
            if criteria[name] is not False:
                built.append(builder.criterion(name))
    # A mistake in a member is found again by every criterion made of it.
    problems.found = list(dict.fromkeys(problems.found))
    problems.report()
    return tuple(built)


class _Builder:
    """Builds each criterion of one mapping once, and its members before it."""

    def __init__(
        self, criteria: Mapping[str, Json], location: Location, prices: Mapping[str, Json]
    ) -> None:
        self._criteria = criteria
        self._location = location
        self._prices = prices
        self._members = MemberReader(criteria, location, self.criterion)
        self._built: dict[str, Criterion] = {}

    def criterion(self, name: str) -> Criterion:
        """Build the criterion called `name`. Raises `ConfigError`."""
        if name not in self._built:
            self._built[name] = self._build(name, self._criteria[name])
        return self._built[name]

    def _build(self, name: str, written: Json) -> Criterion:
        location = self._location
        given = without_alias(name, _normalized(name, written, location))
        kind = _scorer_class(name, given, location)
        options = {key: value for key, value in given.items() if key not in COMMON_KEYS}
        if issubclass(kind, Cost | CostOfPassed):
            options.setdefault("prices", self._prices)
        if issubclass(kind, AdkMetric):
            options = kind.options_of(name, given.get("threshold"), options)
        scorer: Scorer | None = None
        problems = Problems()
        with problems:
            if issubclass(kind, OfCriteria):
                options["of"] = self._members.read(name, options.pop("of", None))
            if issubclass(kind, MeanOfTurns):
                options["of"] = self._of_turns(name, options.pop("of", None))
        with problems:
            scorer = _scorer(name, written, kind, options, location)
        problems.found += [
            *_threshold_problems(name, given, scorer or kind, location),
            *objectives.problems(name, given, location),
            *aggregating.problems(name, given, scorer or kind, location),
            *_agent_problems(name, given, location),
            *_intermediate_problems(name, given, location),
            *_session_problems(name, given, kind, location),
        ]
        if scorer is None or problems.found:
            raise ConfigError(problems.found)
        if given.get(INCLUDE_INTERMEDIATE):
            scorer = WithIntermediateTexts(scorer)
        if given.get("agent") is not None:
            scorer = OfAgent(scorer, given["agent"], given.get("view") or "own")
        return Criterion(
            name,
            scorer,
            given.get("threshold"),
            given.get("objective"),
            aggregation=aggregating.aggregation_of(given),
        )

    def _of_turns(self, name: str, of: Json) -> ScoredCriterion:
        """The criterion for single invocations that `name` averages. Raises `ConfigError`."""
        known = [one for one in self._criteria if one != name and self._criteria[one] is not False]
        if not isinstance(of, str) or of not in known:
            hint = did_you_mean(of, known) if isinstance(of, str) else ""
            text = f"found {show_value(of)}, expected the name of another criterion{hint}"
            raise ConfigError([self._location.problem((name, "of"), text)])
        scorer = self.criterion(of).scorer
        if scores_sessions(scorer):
            text = f"found {of!r}, which scores sessions, expected a criterion for single turns"
            raise ConfigError([self._location.problem((name, "of"), text)])
        return ScoredCriterion(of, scorer)


def _normalized(name: str, written: Json, location: Location) -> Mapping[str, Json]:
    given = normalized(written)
    if given is None:
        text = (
            f"found {show_value(written)}, expected a threshold (a number) or a mapping of"
            " threshold and options"
        )
        raise ConfigError([location.problem((name,), text)])
    if written and isinstance(written, dict) and len(given) < len(written):
        text = "found a key in camelCase and in snake_case, expected it once"
        raise ConfigError([location.problem((name,), text)])
    return given


def _scorer_class(name: str, given: Mapping[str, Json], location: Location) -> type[Scorer]:
    """The scorer's class. Its name is under `scorer`, or else that of the criterion."""
    keys: KeyPath = (name, "scorer") if "scorer" in given else (name,)
    scorer_name, takes = given.get("scorer", name), given.get("takes", [])
    if not isinstance(scorer_name, str):
        text = f"found {show_value(scorer_name)}, expected the name of a scorer"
        raise ConfigError([location.problem(keys, text)])
    shapes = [takes] if isinstance(takes, str) else takes
    if not isinstance(shapes, list) or not all(isinstance(shape, str) for shape in shapes):
        text = f"found {show_value(takes)}, expected a list of {', '.join(SHAPES)}"
        raise ConfigError([location.problem((name, "takes"), text)])
    try:
        return scorer_class(scorer_name, shapes)
    except PluginError as error:
        text = str(error)
        if scorer_name in NOT_AVAILABLE:
            text = (
                f"found {scorer_name!r}, expected a criterion for agents: criteria for simulated"
                " users are not available in this version"
            )
        of_key = "scorer" not in given
        raise ConfigError([location.problem(keys, text, of_key=of_key)]) from error


def _scorer(
    name: str, written: Json, kind: type[Scorer], options: Mapping[str, Json], location: Location
) -> Scorer:
    try:
        return build_scorer(kind, options)
    except ValidationError as error:
        raise ConfigError(_option_problems(error, name, written, kind, location)) from error
    except PluginError as error:
        raise ConfigError([location.problem((name,), str(error), of_key=True)]) from error


def _option_problems(
    error: ValidationError, name: str, written: Json, kind: type[Scorer], location: Location
) -> Iterator[Problem]:
    """The problems with the options, at the keys as they are spelled in the file."""
    spelling: dict[str, str] = {}
    if isinstance(written, dict):
        spelling = {snake_case(key): key for key in written}
    for details in error.errors(include_url=False):
        path = details["loc"]
        first = tuple(spelling.get(str(step), step) for step in path[:1])
        details["loc"] = first + path[1:]
        yield problem(details, kind, location.document, (*location.path, name), COMMON_KEYS)


def _threshold_problems(
    name: str, given: Mapping[str, Json], scorer: Scorer | type[Scorer], location: Location
) -> Iterator[Problem]:
    threshold = given.get("threshold")
    low, high = aggregating.threshold_range(given, scorer)
    if threshold is None or (is_number(threshold) and low <= threshold <= high):
        return
    expected = f"a number from {low:g}"
    if math.isfinite(high):
        expected = f"{expected} to {high:g}"
    text = f"found {show_value(threshold)}, expected {expected}"
    yield location.problem((name, "threshold"), text)


def _intermediate_problems(
    name: str, given: Mapping[str, Json], location: Location
) -> Iterator[Problem]:
    include = given.get(INCLUDE_INTERMEDIATE)
    if include is not None and not isinstance(include, bool):
        text = f"found {show_value(include)}, expected true or false"
        yield location.problem((name, INCLUDE_INTERMEDIATE), text)


def _session_problems(
    name: str, given: Mapping[str, Json], kind: type[Scorer], location: Location
) -> Iterator[Problem]:
    """Options that look at parts of a single invocation."""
    if not scores_sessions(kind):
        return
    for option in ("agent", INCLUDE_INTERMEDIATE):
        if given.get(option):
            text = f"found {option} of a criterion for whole sessions, expected none"
            yield location.problem((name, option), text, of_key=True)


def _agent_problems(name: str, given: Mapping[str, Json], location: Location) -> Iterator[Problem]:
    agent, view = given.get("agent"), given.get("view")
    if agent is not None and (not isinstance(agent, str) or not agent):
        text = f"found {show_value(agent)}, expected the name of an agent"
        yield location.problem((name, "agent"), text)
    if view is None:
        return
    if view not in VIEWS:
        hint = did_you_mean(view, VIEWS) if isinstance(view, str) else ""
        text = f"found {show_value(view)}, expected {' or '.join(map(repr, VIEWS))}{hint}"
        yield location.problem((name, "view"), text)
    elif agent is None:
        text = "found a view without an agent, expected both"
        yield location.problem((name, "view"), text, of_key=True)
