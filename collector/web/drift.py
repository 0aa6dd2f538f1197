"""Scores that became worse: what a reader of an alert must see first.

Streams with an open alarm are shown with all that is known about them. The others take one line
each, because usually nothing is wrong with them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pathgauge.collector.api import drifts
from pathgauge.collector.api.drift_models import ChangedMiss, ScoreDrift
from pathgauge.collector.api.queries import DriftQuery
from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.sinks.prometheus.drift.gauges import NOTICEABLE_DAYS, is_silent
from pathgauge.collector.web import links
from pathgauge.collector.web.visit import Visit
from pathgauge.collector.web.wording import AGAINST

State = Literal["worse", "suspected", "steady", "learning"]
Place = tuple[str, str, str | None]
"""Tenant, agent and scenario; `None`: all scenarios of the agent together."""
Measured = tuple[str, str, str, str | None]
"""Tenant, agent, metric and judge."""

SCENARIOS = 10
"""Scenarios that are listed for an agent that became worse, and in the overview."""


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream of scores that are compared with a baseline."""

    stream: ScoreDrift
    state: State
    against: str
    """What the scores are compared with, in words."""
    movement: Literal["fell", "rose"] | None
    """How the mean changed; `None` if one of both means is not known."""
    is_silent: bool
    """Whether there was no score for so long that nothing alerts any more."""
    link: str
    """To the scenario."""


@dataclass(frozen=True, slots=True)
class AlarmView:
    """The open alarms of one metric."""

    view: StreamView
    """The stream that explains the most."""
    further: Sequence[StreamView]
    """The same scores, compared with something else."""


@dataclass(frozen=True, slots=True)
class WorseView:
    """An agent in a scenario with at least one open alarm."""

    view: StreamView
    """The stream with the most evidence."""
    further: int
    """Other streams with an open alarm."""
    cause: ChangedMiss | None
    """What explains most of the loss, in any of them."""


@dataclass(frozen=True, slots=True)
class DriftView:
    """What the page of a scenario shows."""

    worse: Sequence[AlarmView] = ()
    others: Sequence[StreamView] = ()
    suspected: int = 0
    """Of the others."""
    learning: int = 0
    """Of the others: those without a score that was compared."""
    scenarios: Sequence[WorseView] = ()
    """If the page is about all scenarios of an agent: those that became worse."""
    together: Sequence[StreamView] = ()
    """If it is about one scenario: open alarms of all scenarios of the agent together that none of
    them has.
    """


def of_series(visit: Visit, series: Series) -> DriftView:
    """The streams of one agent in one scenario. An empty scenario stands for all scenarios of the
    agent together.
    """
    views = _views(visit, _query(series, series.scenario))
    others = [one for one in views if one.state != "worse"]
    return DriftView(
        worse=_alarms(one for one in views if one.state == "worse"),
        others=others,
        suspected=sum(one.state == "suspected" for one in others),
        learning=sum(one.state == "learning" for one in others),
        scenarios=[] if series.scenario else worse(_scenarios(visit, series))[:SCENARIOS],
        together=_together(visit, series) if series.scenario else [],
    )


def worse(views: Sequence[StreamView]) -> list[WorseView]:
    """Agents in scenarios with an open alarm, those with the most evidence first. The `views` must
    have this order. As for alerts, all scenarios of an agent together are left out if one of them
    has an alarm of its own, and streams that are silent are left out.
    """
    views = [one for one in views if not one.is_silent]
    explained = _explained(views)
    found: dict[Place, list[StreamView]] = {}
    for one in views:
        if one.state == "worse" and not _is_duplicate(one, explained):
            found.setdefault(place_of(one.stream), []).append(one)
    return [WorseView(own[0], len(own) - 1, _cause(own)) for own in found.values()]


def every(visit: Visit) -> list[StreamView]:
    """The streams that the reader may see, those with the most evidence first."""
    return _views(visit, DriftQuery())


def place_of(stream: ScoreDrift) -> Place:
    """Where the scores are from."""
    return stream.tenant, stream.agent, stream.scenario_id


def _alarms(views: Iterable[StreamView]) -> list[AlarmView]:
    found: dict[tuple[str, str | None], list[StreamView]] = {}
    for one in views:
        found.setdefault((one.stream.metric, one.stream.judge), []).append(one)
    for own in found.values():  # the comparison with the version before knows no misses
        own.sort(key=lambda one: one.stream.against == "version")
    return [AlarmView(first, further) for first, *further in found.values()]


def _scenarios(visit: Visit, series: Series) -> list[StreamView]:
    return [one for one in _views(visit, _query(series, None)) if one.stream.scenario_id]


def _together(visit: Visit, series: Series) -> list[StreamView]:
    views = _views(visit, _query(series, None))
    explained = _explained(views)
    return [
        one
        for one in views
        if one.state == "worse"
        and one.stream.scenario_id is None
        and not _is_duplicate(one, explained)
    ]


def _explained(views: Iterable[StreamView]) -> set[Measured]:
    """What became worse in a scenario, so that an alarm of all scenarios together adds nothing."""
    return {
        _measured(one.stream)
        for one in views
        if one.state == "worse" and one.stream.against in ("threshold", "learned")
    }


def _is_duplicate(view: StreamView, explained: Container[Measured]) -> bool:
    return view.stream.against == "scenarios" and _measured(view.stream) in explained


def _measured(stream: ScoreDrift) -> Measured:
    return stream.tenant, stream.agent, stream.metric, stream.judge


def _query(series: Series, scenario: str | None) -> DriftQuery:
    return DriftQuery(agent=series.agent, scenario=scenario, tenant=series.tenant)


def _views(visit: Visit, query: DriftQuery) -> list[StreamView]:
    found = drifts.report(visit.sources, visit.tenant, query)
    return [_view(one, visit.now) for one in found.streams]


def _view(stream: ScoreDrift, now: float) -> StreamView:
    last = stream.last
    return StreamView(
        stream,
        _state(stream),
        AGAINST[stream.against],
        _movement(stream),
        last is not None and is_silent(last.timestamp(), now, replaced=stream.replaced),
        links.scenario(stream.agent, stream.scenario_id, stream.tenant),
    )


def _state(stream: ScoreDrift) -> State:
    if stream.alarm:
        return "worse"
    if stream.evidence_days >= NOTICEABLE_DAYS:
        return "suspected"
    return "learning" if stream.last is None else "steady"


def _movement(stream: ScoreDrift) -> Literal["fell", "rose"] | None:
    if stream.mean is None or stream.mean_before is None:
        return None
    return "fell" if stream.mean < stream.mean_before else "rose"


def _cause(views: Iterable[StreamView]) -> ChangedMiss | None:
    """The views are in the order of evidence."""
    return next((one.stream.changes[0] for one in views if one.stream.changes), None)
