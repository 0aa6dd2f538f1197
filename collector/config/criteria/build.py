"""Builds criteria: what people wrote comes in, `Criterion`s with their scorers go out, or a
`ConfigError` with every mistake.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from pydantic import ValidationError

from pathgauge.collector.config.criteria import objectives
from pathgauge.collector.config.criteria.syntax import (
    OWN,
    Place,
    affected,
    is_number,
    parts,
    snake_case,
)
from pathgauge.collector.config.plugins import PluginError, build_scorer, scorer_class
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
from pathgauge.scorers.adapters.inputs import SHAPES
from pathgauge.scorers.composite.agent_view import VIEWS, OfAgent
from pathgauge.scorers.composite.composite import Member, OfCriteria
from pathgauge.scorers.types import Json, Scorer

NOT_AVAILABLE = frozenset({
    "multi_turn_task_success_v1",
    "multi_turn_tool_use_quality_v1",
    "multi_turn_trajectory_quality_v1",
    "per_turn_user_simulator_quality_v1",
    "rubric_based_multi_turn_trajectory_quality_v1",
})  # fmt: skip
"""ADK criteria that judge whole conversations, or the user of one, which this version cannot."""


def build(
    criteria: Mapping[str, Json], place: Place, changed: Iterable[str] | None = None
) -> tuple[Criterion, ...]:
    """Build the criteria that are not switched off: all, or the `changed` ones and those that are
    made of them.

    Raises `ConfigError` with every problem.
    """
    built: list[Criterion] = []
    builder, problems = _Builder(criteria, place), Problems()
    for name in criteria if changed is None else affected(criteria, changed):
        with problems:
            if criteria[name] is not False:
                built.append(builder.criterion(name))
    problems.found = list(
        dict.fromkeys(problems.found)
    )  # a mistake in a member is found again by what is made of it
    problems.report()
    return tuple(built)


class _Builder:
    """The criteria of one place, each built once, and before those that are made of it."""

    def __init__(self, criteria: Mapping[str, Json], place: Place) -> None:
        self._criteria = criteria
        self._place = place
        self._built: dict[str, Criterion] = {}
        self._begun: list[str] = []

    def criterion(self, name: str) -> Criterion:
        """Build the criterion called `name`."""
        if name not in self._built:
            self._begun.append(name)
            try:
                self._built[name] = self._build(name, self._criteria[name])
            finally:
                self._begun.pop()
        return self._built[name]

    def _build(self, name: str, written: Json) -> Criterion:
        place, given = self._place, _parts(name, written, self._place)
        kind = _scorer_class(name, given, place)
        options = {key: value for key, value in given.items() if key not in OWN}
        scorer: Scorer | None = None
        problems = Problems()
        with problems:
            if issubclass(kind, OfCriteria):
                options["of"] = self._members(name, options.pop("of", None))
        with problems:
            scorer = _scorer(name, written, kind, options, place)
        problems.found += [
            *_threshold_problems(name, given, scorer or kind, place),
            *objectives.problems(name, given, place),
            *_agent_problems(name, given, place),
        ]
        if scorer is None or problems.found:
            raise ConfigError(problems.found)
        if given.get("agent") is not None:
            scorer = OfAgent(scorer, given["agent"], given.get("view") or "own")
        return Criterion(name, scorer, given.get("threshold"), given.get("objective"))

    def _members(self, name: str, of: Json) -> tuple[Member, ...]:
        """The criteria that `name` is made of, without those that are switched off."""
        if not isinstance(of, list) or not of:
            found = "nothing" if of is None else "an empty list" if of == [] else show_value(of)
            raise ConfigError(
                [self._place.problem((name, "of"), f"found {found}, expected a list of criteria")]
            )
        members: list[Member] = []
        problems = Problems()
        for index, member in enumerate(of):
            with problems:
                members += self._member((name, "of", index), member)
        problems.report()
        if not members:
            raise ConfigError(
                [
                    self._place.problem(
                        (name, "of"),
                        "found only criteria that are switched off, expected one that is not",
                    )
                ]
            )
        return tuple(members)

    def _member(self, keys: KeyPath, member: Json) -> Iterator[Member]:
        if not isinstance(member, str) or member not in self._criteria:
            hint = did_you_mean(member, self._criteria) if isinstance(member, str) else ""
            raise ConfigError(
                [
                    self._place.problem(
                        keys, f"found {show_value(member)}, expected the name of a criterion{hint}"
                    )
                ]
            )
        if member in self._begun:
            chain = " -> ".join([*self._begun[self._begun.index(member) :], member])
            raise ConfigError(
                [
                    self._place.problem(
                        keys, f"found {member!r}, which would be made of itself: {chain}"
                    )
                ]
            )
        if self._criteria[member] is False:
            return
        criterion = self.criterion(member)
        if criterion.threshold is None:
            raise ConfigError(
                [
                    self._place.problem(
                        keys, f"found {member!r}, expected a criterion with a threshold"
                    )
                ]
            )
        yield Member(member, criterion.scorer, criterion.threshold)


def _parts(name: str, written: Json, place: Place) -> Mapping[str, Json]:
    given = parts(written)
    if given is None:
        text = (
            f"found {show_value(written)}, expected a threshold (a number) or a mapping of"
            " threshold and options"
        )
        raise ConfigError([place.problem((name,), text)])
    if written and isinstance(written, dict) and len(given) < len(written):
        raise ConfigError(
            [place.problem((name,), "found a key in camelCase and in snake_case, expected it once")]
        )
    return given


def _scorer_class(name: str, given: Mapping[str, Json], place: Place) -> type[Scorer]:
    """The scorer that a criterion names, or whose name it has."""
    keys: KeyPath = (name, "scorer") if "scorer" in given else (name,)
    called, takes = given.get("scorer", name), given.get("takes", [])
    if not isinstance(called, str):
        raise ConfigError(
            [place.problem(keys, f"found {show_value(called)}, expected the name of a scorer")]
        )
    shapes = [takes] if isinstance(takes, str) else takes
    if not isinstance(shapes, list) or not all(isinstance(shape, str) for shape in shapes):
        raise ConfigError(
            [
                place.problem(
                    (name, "takes"),
                    f"found {show_value(takes)}, expected a list of {', '.join(SHAPES)}",
                )
            ]
        )
    try:
        return scorer_class(called, shapes)
    except PluginError as error:
        text = (
            f"found {called!r}, which judges whole conversations and is not available in this"
            " version"
        )
        text = text if called in NOT_AVAILABLE else str(error)
        raise ConfigError([place.problem(keys, text, of_key="scorer" not in given)]) from error


def _scorer(
    name: str, written: Json, kind: type[Scorer], options: Mapping[str, Json], place: Place
) -> Scorer:
    try:
        return build_scorer(kind, options)
    except ValidationError as error:
        raise ConfigError(_option_problems(error, name, written, kind, place)) from error
    except PluginError as error:
        raise ConfigError([place.problem((name,), str(error), of_key=True)]) from error


def _option_problems(
    error: ValidationError, name: str, written: Json, kind: type[Scorer], place: Place
) -> Iterator[Problem]:
    """What is wrong with the options, at the keys as they are spelled in the file."""
    spelled = {snake_case(key): key for key in written} if isinstance(written, dict) else {}
    for details in error.errors(include_url=False):
        loc = (
            tuple(spelled.get(str(step), step) for step in details["loc"][:1]) + details["loc"][1:]
        )
        yield problem({**details, "loc": loc}, kind, place.document, (*place.path, name))


def _threshold_problems(
    name: str, given: Mapping[str, Json], scorer: Scorer | type[Scorer], place: Place
) -> Iterator[Problem]:
    threshold = given.get("threshold")
    if threshold is None or (is_number(threshold) and scorer.low <= threshold <= scorer.high):
        return
    expected = (
        f"a number from {scorer.low:g} to {scorer.high:g}"
        if math.isfinite(scorer.high)
        else f"a number from {scorer.low:g}"
    )
    yield place.problem((name, "threshold"), f"found {show_value(threshold)}, expected {expected}")


def _agent_problems(name: str, given: Mapping[str, Json], place: Place) -> Iterator[Problem]:
    agent, view = given.get("agent"), given.get("view")
    if agent is not None and (not isinstance(agent, str) or not agent):
        yield place.problem(
            (name, "agent"), f"found {show_value(agent)}, expected the name of an agent"
        )
    if view is not None and view not in VIEWS:
        hint = did_you_mean(view, VIEWS) if isinstance(view, str) else ""
        yield place.problem(
            (name, "view"),
            f"found {show_value(view)}, expected {' or '.join(map(repr, VIEWS))}{hint}",
        )
    elif view is not None and agent is None:
        yield place.problem(
            (name, "view"), "found the view of no agent, expected agent beside it", of_key=True
        )
