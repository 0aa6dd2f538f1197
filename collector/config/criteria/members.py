"""Reads `of`: the members of a criterion that is made of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pathgauge.collector.config.criteria.syntax import Location
from pathgauge.collector.core.documents import (
    ConfigError,
    KeyPath,
    Problems,
    did_you_mean,
    show_value,
)
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.scorers.composite.composite import Member
from pathgauge.scorers.session_protocol import scores_sessions
from pathgauge.scorers.types import Json


class MemberReader:
    """Builds members with `build`, and detects criteria that are members of themselves."""

    def __init__(
        self,
        criteria: Mapping[str, Json],
        location: Location,
        build: Callable[[str], Criterion],
    ) -> None:
        self._criteria = criteria
        self._location = location
        self._build = build
        self._chain: list[str] = []
        """The criteria whose members are being built, the outermost first."""

    def read(self, name: str, of: Json) -> tuple[Member, ...]:
        """The members of `name` that are not switched off. Raises `ConfigError`."""
        if not isinstance(of, list) or not of:
            raise self._error((name, "of"), f"found {_shown(of)}, expected a list of criteria")
        members: list[Member] = []
        problems = Problems()
        self._chain.append(name)
        try:
            for index, member in enumerate(of):
                with problems:
                    members += self._member((name, "of", index), member)
        finally:
            self._chain.pop()
        problems.report()
        if not members:
            text = "found only criteria that are switched off, expected one that is not"
            raise self._error((name, "of"), text)
        return tuple(members)

    def _member(self, keys: KeyPath, name: Json) -> Iterator[Member]:
        if not isinstance(name, str) or name not in self._criteria:
            hint = did_you_mean(name, self._criteria) if isinstance(name, str) else ""
            text = f"found {show_value(name)}, expected the name of a criterion{hint}"
            raise self._error(keys, text)
        if name in self._chain:
            chain = " -> ".join([*self._chain[self._chain.index(name) :], name])
            text = f"found {name!r}, expected no criterion that is made of itself: {chain}"
            raise self._error(keys, text)
        if self._criteria[name] is False:
            return
        criterion = self._build(name)
        if criterion.aggregation is not None:
            over = criterion.aggregation.over
            text = f"found {name!r} with over: {over}, expected a criterion over single invocations"
            raise self._error(keys, text)
        if scores_sessions(criterion.scorer):
            text = f"found {name!r}, which scores sessions, expected one for single invocations"
            raise self._error(keys, text)
        if criterion.threshold is None:
            raise self._error(keys, f"found {name!r}, expected a criterion with a threshold")
        yield Member(name, criterion.scorer, criterion.threshold)

    def _error(self, keys: KeyPath, text: str) -> ConfigError:
        return ConfigError([self._location.problem(keys, text)])


def _shown(of: Json) -> str:
    if of is None:
        return "nothing"
    if of == []:
        return "an empty list"
    return show_value(of)
