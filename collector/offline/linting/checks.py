"""Checks a turn of a reference against its runs: what never matches, and what never matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pathgauge.collector.offline.linting.expected_calls import MIN_RUNS, calls_findings
from pathgauge.collector.offline.linting.findings import Finding, Level
from pathgauge.collector.offline.linting.observations import ObservedTurn
from pathgauge.collector.offline.linting.thresholds import criteria_findings
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.wording import counted, short
from pathgauge.scorers.tool_use.tools import ForbiddenTools
from pathgauge.scorers.types import Invocation, ReferenceTurn

_ALWAYS = 0.9


def findings(observed: ObservedTurn, of: int, window: int) -> Iterator[Finding]:
    """The findings of one turn. `of`: all runs; `window`: the runs whose mean a gauge shows."""
    if not observed.evaluations and of >= MIN_RUNS:
        text = f"matches 0 of the last {counted(of, 'run')}"
        yield _finding(observed, "problem", "never_matches", text)
    yield from _contradictions(observed)
    if len(observed.evaluations) < MIN_RUNS:
        return
    runs = [one.invocation for one in observed.evaluations]
    yield from _forbidden(observed, runs)
    yield from _phrases(observed, runs)
    for level, check, text in (
        *calls_findings(observed.turn, runs),
        *criteria_findings(observed.evaluations, window),
    ):
        yield _finding(observed, level, check, text)


def _finding(observed: ObservedTurn, level: Level, check: str, text: str) -> Finding:
    return Finding(level, observed.reference.scenario_id, observed.index, check, text)


def _contradictions(observed: ObservedTurn) -> Iterator[Finding]:
    forbidden = {tool_name(call.name) for call in observed.turn.forbidden if call.arguments is None}
    expected = [tool_name(call.name) for call in observed.turn.tool_calls or ()]
    for name in dict.fromkeys(name for name in expected if name in forbidden):
        text = f"the tool {name} is expected and forbidden"
        yield _finding(observed, "problem", "contradiction", text)


def _forbidden(observed: ObservedTurn, runs: Sequence[Invocation]) -> Iterator[Finding]:
    for call in observed.turn.forbidden:
        only = ReferenceTurn(forbidden=(call,))
        used = sum(ForbiddenTools().score(run, only).value == 0 for run in runs)
        if used >= _ALWAYS * len(runs):
            text = (
                f"the forbidden tool {call.name} is used in {used} of {counted(len(runs), 'run')}"
            )
            yield _finding(observed, "problem", "always_forbidden", text)


def _phrases(observed: ObservedTurn, runs: Sequence[Invocation]) -> Iterator[Finding]:
    answers = [run.final_response.casefold() for run in runs if run.final_response]
    for phrase in observed.turn.response_contains if answers else ():
        if not any(phrase.casefold() in answer for answer in answers):
            text = f"the phrase {short(phrase)} is in 0 of {counted(len(answers), 'answer')}"
            yield _finding(observed, "problem", "phrase_never_found", text)
