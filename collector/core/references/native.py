"""The native reference format, in YAML or JSON: one scenario or a list of scenarios.

A conversation lists its turns under `turns`; a scenario with a single turn may have the keys of the
turn beside `scenario`. docs/references.md documents the format for users.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pathgauge.collector.core.documents import Document, KeyPath, Problems
from pathgauge.collector.core.documents.places import moved
from pathgauge.collector.core.documents.validation import validate
from pathgauge.collector.core.references.format import Format, LoadedReferences
from pathgauge.collector.core.references.native_schema import (
    Expectation,
    Scenario,
    Step,
    Steps,
    Turn,
)
from pathgauge.collector.core.references.parallel_groups import joined
from pathgauge.collector.core.references.rows import mappings, rows
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn, TurnRubric


def recognises(data: Json) -> bool:
    """Whether the data is a scenario or a list with a scenario in it."""
    return any("scenario" in row for row in mappings(data))


def load(document: Document) -> LoadedReferences:
    """The references of one document. Raises `ConfigError` with every problem."""
    loaded, problems = LoadedReferences(_with_places_of_criteria(document)), Problems()
    for path, item in rows(document):
        with problems:
            loaded.add(path, _reference(validate(Scenario, document, item, path)))
    problems.report()
    return loaded


FORMAT = Format("pathgauge", ("scenario",), recognises, load)


def _with_places_of_criteria(document: Document) -> Document:
    """The document with the places of `thresholds` under `criteria`, where mistakes in criteria are
    reported.
    """
    return moved(document, document.data, lambda path: _threshold_of(document.data, path))


def _threshold_of(data: Json, path: KeyPath) -> KeyPath:
    """The path of a threshold, given its path under `criteria`; any other path unchanged."""
    row = path[:1] if isinstance(data, list) else ()
    scenario = data[row[0]] if row else data
    thresholds = scenario.get("thresholds") if isinstance(scenario, dict) else None
    match path[len(row) :]:
        case ("criteria", name, *_) if isinstance(thresholds, dict) and name in thresholds:
            return (*row, "thresholds", *path[len(row) + 1 :])
    return path


def _reference(scenario: Scenario) -> Reference:
    turns = scenario.turns if scenario.turns is not None else [scenario]
    criteria = {**scenario.criteria, **scenario.thresholds}
    return Reference(
        scenario.scenario,
        tuple(_turn(turn) for turn in turns),
        criteria=criteria,
        expected_interval=scenario.expected_interval,
        required=scenario.required,
    )


def _turn(turn: Turn) -> ReferenceTurn:
    return replace(
        expectation(turn), agents={name: expectation(agent) for name, agent in turn.agents.items()}
    )


def expectation(part: Expectation) -> ReferenceTurn:
    """The expectation as scorers take it."""
    return ReferenceTurn(
        user_input=part.input,
        tool_calls=None if part.expected_tools is None else _trajectory(part.expected_tools),
        response=part.expected_response,
        alternatives=tuple(_trajectory(steps) for steps in part.alternatives),
        forbidden=tuple(ExpectedCall(call.name, call.args) for call in part.forbidden_tools),
        response_contains=tuple(part.response_contains),
        expected_agent=part.expected_agent,
        escalate=part.escalate,
        rubrics=tuple(
            TurnRubric(rubric.text, rubric.id, rubric.description, rubric.of)
            for rubric in part.rubrics
        ),
    )


def _trajectory(steps: Steps) -> tuple[ExpectedCall, ...]:
    return joined([list(_calls(step)) for step in steps])


def _calls(step: Step) -> Iterator[ExpectedCall]:
    for call in [step] if step.any_order is None else step.any_order:
        yield ExpectedCall(call.name, call.args, call.optional)
