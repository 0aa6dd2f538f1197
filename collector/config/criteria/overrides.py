"""Builds the criteria of scenarios whose references override the common ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pathgauge.collector.config import Config, criteria
from pathgauge.collector.config.criteria import Location
from pathgauge.collector.config.pricing import as_option
from pathgauge.collector.core.documents import Problems
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.references.formats import Entry

Overrides = dict[str, tuple[Criterion, ...]]
"""All criteria of a scenario, by its id."""


def overrides_of(
    config: Config, entries: Iterable[Entry], common: Iterable[Criterion]
) -> Overrides:
    """The criteria of each scenario that has its own. Raises `ConfigError`."""
    found: Overrides = {}
    problems = Problems()
    for entry in entries:
        with problems:
            if entry.reference.criteria:
                own = _criteria_of(entry, config, common)
                found[entry.reference.scenario_id] = own
    problems.report()
    return found


def _criteria_of(
    entry: Entry, config: Config, common: Iterable[Criterion]
) -> tuple[Criterion, ...]:
    """The common criteria in their order, with those that the scenario overrides built again.
    Problems are located in the scenario.
    """
    own = entry.reference.criteria
    merged = criteria.merge(config.criteria, own)
    location = Location(entry.document, (*entry.path, "criteria"))
    built = criteria.build(merged, location, changed=own, prices=as_option(config.prices))
    by_name = {
        criterion.name: criterion for criterion in common if own.get(criterion.name) is not False
    }
    rebuilt = {criterion.name: criterion for criterion in built}
    _refuse_own_aggregates(own, (by_name, rebuilt), location)
    return tuple((by_name | rebuilt).values())


def _refuse_own_aggregates(
    own: Iterable[str], criteria_by_name: Iterable[Mapping[str, Criterion]], location: Location
) -> None:
    """A criterion over several scenarios is the same in all of them."""
    problems = Problems()
    overridden = [by_name[name] for name in own for by_name in criteria_by_name if name in by_name]
    for criterion in overridden:
        if criterion.aggregation is not None and criterion.aggregation.over != "scenario":
            text = (
                f"found an override of a criterion with over: {criterion.aggregation.over},"
                " expected none, or false to leave this scenario out"
            )
            problems.found.append(location.problem((criterion.name,), text, of_key=True))
    problems.found = list(dict.fromkeys(problems.found))
    problems.report()
