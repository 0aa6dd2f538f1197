"""Creates references from good traces, for `pathgauge record`.

Every invocation with a scenario id is a turn. The invocations of one conversation become the turns
of one reference, in order; an invocation without a conversation becomes a reference of one turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from pathgauge.collector.core.documents import ConfigError, Problem
from pathgauge.collector.core.references.parallel_groups import steps
from pathgauge.collector.core.references.recorded_turn import RecordOptions, recorded_turn
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.types import (
    ExpectedCall,
    Flag,
    Invocation,
    Json,
    Reference,
    ReferenceTurn,
)

__all__ = ["RecordOptions", "Recording", "record"]

_INCOMPLETE_CONTENT: frozenset[Flag] = frozenset({"truncated", "redacted"})


@dataclass(frozen=True, slots=True)
class Recording:
    """The result of `record`."""

    references: tuple[Reference, ...]
    notes: tuple[str, ...]
    """What was left out and why, one line each."""


@dataclass(frozen=True, slots=True)
class _Conversation:
    source: str
    scenario: str
    turns: tuple[Invocation, ...]

    def note(self, text: str) -> str:
        return f"{self.source}: scenario {self.scenario}: {text}"

    def problem(self, text: str) -> Problem:
        return Problem(self.source, None, (), f"scenario {self.scenario}: {text}")


def record(
    replayed: Iterable[Replayed], options: RecordOptions, *, of_one_store: bool = False
) -> Recording:
    """One reference for each scenario, in the order of first appearance. Each path has its own
    conversations, unless all paths are traces `of_one_store`. Raises `ConfigError` for failed
    invocations, missing turns and paths without a scenario.
    """
    paths = list(replayed)
    return _Recorder(options).record([paths] if of_one_store else [[one] for one in paths])


@dataclass(slots=True)
class _Recorder:
    options: RecordOptions
    notes: list[str] = field(default_factory=list)

    def record(self, replayed: Sequence[Sequence[Replayed]]) -> Recording:
        conversations = [found for some in replayed for found in self._conversations(some)]
        problems = [problem for one in conversations for problem in self._problems(one)]
        if not conversations:
            text = (
                "found no invocation with a scenario id, expected one; --scenario gives all of"
                " them one"
            )
            if self.options.scenario:
                text = "found no invocation, expected one"
            paths = chain.from_iterable(replayed)
            problems = [Problem(one.source, None, (), text) for one in paths]
        if problems:
            raise ConfigError(problems)
        references: dict[str, Reference] = {}
        for conversation in conversations:
            scenario = conversation.scenario
            first = references.get(scenario)
            if first is None:
                reference, notes = _reference(conversation, self.options)
                references[scenario] = reference
                self._note(conversation, *notes)
                continue
            # Its trajectory may become an alternative, its responses are never recorded.
            reference, notes = _reference(conversation, replace(self.options, response=False))
            if _trajectories(first) != _trajectories(reference):
                references[scenario] = self._merged(first, reference, conversation)
            if references[scenario] != first:
                self._note(conversation, *notes)
        return Recording(tuple(references.values()), tuple(dict.fromkeys(self.notes)))

    def _conversations(self, paths: Sequence[Replayed]) -> Iterator[_Conversation]:
        """The invocations of paths by scenario and conversation. Those without a scenario are
        skipped.
        """
        found: dict[tuple[str, ...], dict[tuple[str, str], Invocation]] = {}
        sources: dict[tuple[str, ...], str] = {}
        for path in paths:
            skipped = 0
            for evaluation in path.evaluations:
                invocation = evaluation.invocation
                scenario = self.options.scenario or _scenario_of(invocation)
                if scenario is None:
                    skipped += 1
                    continue
                run = invocation.trace_id, invocation.span_id
                conversation = invocation.conversation_id
                key = (
                    scenario,
                    invocation.tenant,
                    *(run if conversation is None else [conversation]),
                )
                found.setdefault(key, {})[run] = invocation
                sources.setdefault(key, path.source)
            if skipped:
                self.notes.append(
                    f"{path.source}: invocations skipped because they lack a unique scenario id:"
                    f" {skipped}; --scenario gives them one"
                )
        for key, turns in found.items():
            in_order = sorted(turns.values(), key=lambda turn: turn.start_ns or 0)
            yield _Conversation(sources[key], key[0], tuple(in_order))

    def _problems(self, conversation: _Conversation) -> Iterator[Problem]:
        for turn in conversation.turns:
            if turn.error and not self.options.failed:
                found = f"{turn.error_type or 'error'}, trace {turn.trace_id}"
                yield conversation.problem(
                    f"found a failed invocation ({found}), expected success, or --allow-failed"
                )
        numbers = [number for number, _ in _numbered(conversation.turns)]
        if numbers != list(range(len(numbers))):
            yield conversation.problem(
                f"found the turns {', '.join(map(str, numbers))} of a conversation, expected every"
                " turn from 0 once"
            )

    def _merged(self, first: Reference, other: Reference, conversation: _Conversation) -> Reference:
        """The first reference. The trajectories of the other become alternatives where that is
        wanted and possible.
        """
        if not self.options.alternatives:
            hint = ""
            if not conversation.turns[0].conversation_id:
                hint = " (without a conversation id, an invocation is no second turn)"
            text = f"left out a trajectory that differs from the first{hint}"
            self._note(conversation, f"{text}; --alternatives keeps it")
            return first
        pairs = list(zip(first.turns, other.turns, strict=False))
        if len(first.turns) != len(other.turns) or any(
            turn.tool_calls is None for pair in pairs for turn in pair
        ):
            self._note(
                conversation,
                "left out a conversation that cannot be an alternative, because its turns differ"
                " from those of the first",
            )
            return first
        turns = tuple(_with_alternative(turn, own.tool_calls or ()) for turn, own in pairs)
        return replace(first, turns=turns)

    def _note(self, conversation: _Conversation, *texts: str) -> None:
        self.notes.extend(map(conversation.note, texts))


def _reference(conversation: _Conversation, options: RecordOptions) -> tuple[Reference, list[str]]:
    """A reference that expects what the conversation did, and notes on what to review."""
    turns = [turn for _, turn in _numbered(conversation.turns)]
    notes = []
    incomplete = sorted({flag for turn in turns for flag in turn.flags & _INCOMPLETE_CONTENT})
    if incomplete:
        notes.append(
            f"content was {' and '.join(incomplete)} before it arrived: review what was recorded"
        )
    recorded = []
    for turn in turns:
        expected, of_turn = recorded_turn(turn, options)
        recorded.append(expected)
        notes.extend(of_turn)
    return Reference(conversation.scenario, tuple(recorded)), notes


def _scenario_of(invocation: Invocation) -> str | None:
    return None if "scenario_conflict" in invocation.flags else invocation.scenario_id


def _numbered(turns: Sequence[Invocation]) -> list[tuple[int, Invocation]]:
    """The invocations with their turn numbers: the number in the spans, or else the position by
    start time.
    """
    if len(turns) == 1 and turns[0].conversation_id is None:
        return [(0, turns[0])]
    numbered = [
        (index if turn.turn is None else turn.turn, turn) for index, turn in enumerate(turns)
    ]
    return sorted(numbered, key=lambda pair: pair[0])


def _with_alternative(turn: ReferenceTurn, calls: tuple[ExpectedCall, ...]) -> ReferenceTurn:
    known = [_trajectory(one) for one in (turn.tool_calls or (), *turn.alternatives)]
    if _trajectory(calls) in known:
        return turn
    return replace(turn, alternatives=(*turn.alternatives, calls))


def _trajectories(reference: Reference) -> list[Json]:
    return [
        None if turn.tool_calls is None else _trajectory(turn.tool_calls)
        for turn in reference.turns
    ]


def _trajectory(calls: Iterable[ExpectedCall]) -> list[list[str]]:
    """A value to compare trajectories by; the order inside a parallel group is ignored."""
    return [
        sorted(json.dumps([call.name, call.arguments], sort_keys=True) for call in step)
        for step in steps(calls)
    ]
