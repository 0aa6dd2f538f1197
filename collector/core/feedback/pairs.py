"""Pairs what people said of runs and sessions with what criteria said of them.

Each counts once for each criterion, whatever the number of people: kappa needs cases that are
independent. Most of the people decide; of each, the newest answer counts. Somebody who answered
several questions about a run says pass only if all answers do, as a run passes only if all its
criteria do. An answer with the name of a criterion is about that criterion only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.kappa import Table
from pathgauge.collector.core.feedback.verdict import VerdictRules, majority

AnswerState: TypeAlias = Literal["paired", "waiting", "ambiguous", "no_verdict"]
"""What became of an answer: `waiting` for the result of its trace, or of the session of its
conversation; `ambiguous`, its trace has several results and it names none; `no_verdict`, it says
neither pass nor fail.
"""


class Judged(NamedTuple):
    """What a criterion said of a run."""

    name: str
    scorer: str
    judge: str
    passed: bool | None
    """`None`: neither passed nor failed."""


class CriterionKey(NamedTuple):
    """Whose agreement is measured."""

    tenant: str
    metric: str
    judge: str = ""
    """The model and template; empty for a criterion that asks no model."""


@dataclass(slots=True)
class Pairs:
    """The pairs of all criteria, and what became of each answer."""

    tables: dict[CriterionKey, Table] = field(default_factory=dict)
    answers: Counter[AnswerState] = field(default_factory=Counter)


class _Version(NamedTuple):
    """The pairs of one version of a scorer."""

    table: Table
    scored_at: float
    """When it scored the newest of these runs, in Unix seconds."""


@dataclass(slots=True)
class Pairing:
    """Collects pairs run by run, in any order: people also answer about old runs."""

    rules: VerdictRules
    _answers: Counter[AnswerState] = field(default_factory=Counter)
    _versions: dict[CriterionKey, dict[str, _Version]] = field(default_factory=dict)
    """The pairs by the version of the scorer. Only the newest counts, which is the one that scored
    last: verdicts of others are not its own.
    """

    @property
    def found(self) -> Pairs:
        """The pairs so far."""
        newest = {
            key: max(versions.values(), key=lambda one: one.scored_at).table
            for key, versions in self._versions.items()
        }
        return Pairs(newest, self._answers)

    def add(
        self, tenant: str, at: float, answers: Sequence[Answer], judged: Iterable[Judged]
    ) -> None:
        """Add a run that was scored at the Unix time `at`, with all answers about it."""
        criteria = list(judged)
        names = {one.name for one in criteria}
        for answer in answers:
            says = self.rules.verdict(answer)
            self._answers["no_verdict" if says is None else "paired"] += 1
        for one in criteria:
            people = people_say(self.rules, answers, one.name, names)
            if people is not None and one.passed is not None:
                self._count(CriterionKey(tenant, one.name, one.judge), at, one, people)

    def leave(self, state: AnswerState, answers: int = 1) -> None:
        """Count answers that are about no single run."""
        self._answers[state] += answers

    def _count(self, key: CriterionKey, at: float, one: Judged, people: bool) -> None:
        known = self._versions.setdefault(key, {}).get(one.scorer, _Version(Table(), at))
        place = {
            (True, True): "both",
            (True, False): "people_only",
            (False, True): "criterion_only",
            (False, False): "neither",
        }[people, bool(one.passed)]
        table = known.table._replace(**{place: getattr(known.table, place) + 1})
        self._versions[key][one.scorer] = _Version(table, max(at, known.scored_at))


def people_say(
    rules: VerdictRules, answers: Iterable[Answer], criterion: str, criteria: Set[str]
) -> bool | None:
    """What most people say of a run with regard to one of its criteria; `None`: nothing."""
    return majority(by_person(rules, answers, criterion, criteria))


def by_person(
    rules: VerdictRules, answers: Iterable[Answer], criterion: str, criteria: Set[str]
) -> Iterator[bool | None]:
    """What each person says of a run with regard to one of its criteria."""
    by_rater: dict[str | None, list[tuple[str, bool]]] = {}
    for answer in answers:
        verdict = rules.verdict(answer)
        if verdict is not None:
            by_rater.setdefault(answer.rater, []).append((answer.name, verdict))
    return (_verdict(given, criterion, criteria) for given in by_rater.values())


def _verdict(
    answers: Sequence[tuple[str, bool]], criterion: str, criteria: Set[str]
) -> bool | None:
    """What one person says about a criterion: what was asked about it, else about the run."""
    own = [verdict for name, verdict in answers if name == criterion]
    about = own or [verdict for name, verdict in answers if name not in criteria]
    return all(about) if about else None
