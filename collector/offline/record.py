"""Makes references of good traces: replayed invocations come in, one reference a scenario goes out,
with notes on what was left out.

Every invocation with a scenario id is a turn. Those of one conversation are the turns of one
reference, in the order of the conversation; an invocation without conversation stands alone. Calls
that one message of a model asked for may come in any order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pathgauge.collector.core.documents import ConfigError, Problem
from pathgauge.collector.core.references.parallel_groups import joined, pieces
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.authoring.options import tools_unknown
from pathgauge.scorers.types import (
    ExpectedCall,
    Flag,
    Invocation,
    Json,
    Reference,
    ReferenceTurn,
    ToolCall,
)

_MAX_LEVELS = 50
"""Arguments nested deeper are left out: a reference file may hold fewer levels than telemetry."""

_DOUBTFUL: frozenset[Flag] = frozenset({"truncated", "redacted"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is recorded."""

    scenario: str | None = None
    """The scenario of all invocations, instead of their own."""
    arguments: bool = True
    response: bool = True
    failed: bool = False
    """Whether failed invocations are recorded too; otherwise they are refused."""
    alternatives: bool = False
    """Whether another trajectory of a scenario becomes an alternative; otherwise it is left out."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What became of the traces."""

    references: tuple[Reference, ...]
    notes: tuple[str, ...]
    """What was left out and why, a line each."""


@dataclass(frozen=True, slots=True)
class _Conversation:
    source: str
    scenario: str
    turns: tuple[Invocation, ...]

    def note(self, text: str) -> str:
        return f"{self.source}: scenario {self.scenario}: {text}"


def record(replayed: Iterable[Replayed], wanted: Wanted) -> Recording:
    """One reference for each scenario, in the order in which they appear. Raises `ConfigError` for
    what must not become one.
    """
    notes: list[str] = []
    paths = list(replayed)
    conversations = [
        conversation for one in paths for conversation in _conversations(one, wanted, notes)
    ]
    problems = [
        problem for conversation in conversations for problem in _problems(conversation, wanted)
    ]
    if not conversations:
        text = (
            "found no invocation with a scenario id, expected one, or --scenario to give all of"
            " them one"
        )
        problems = [Problem(one.source, None, (), text) for one in paths]
    if problems:
        raise ConfigError(problems)
    references: dict[str, Reference] = {}
    for conversation in conversations:
        reference = _reference(conversation, wanted, notes)
        first = references.setdefault(reference.scenario_id, reference)
        if first is not reference and _trajectories(first) != _trajectories(reference):
            references[reference.scenario_id] = _with_another(
                first, reference, conversation, wanted, notes
            )
    return Recording(tuple(references.values()), tuple(dict.fromkeys(notes)))


def _conversations(replayed: Replayed, wanted: Wanted, notes: list[str]) -> Iterator[_Conversation]:
    """The invocations of one path by scenario and conversation; what belongs to no scenario is
    passed over.
    """
    found: dict[tuple[str, ...], list[Invocation]] = {}
    passed_over = 0
    for evaluation in replayed.evaluations:
        one = evaluation.invocation
        scenario = wanted.scenario or (
            None if "scenario_conflict" in one.flags else one.scenario_id
        )
        if scenario is None:
            passed_over += 1
        elif one.conversation_id is None:
            found[scenario, one.tenant, one.trace_id, one.span_id] = [one]
        else:
            found.setdefault((scenario, one.tenant, one.conversation_id), []).append(one)
    if passed_over:
        notes.append(
            f"{replayed.source}: invocations without one scenario id, passed over: {passed_over};"
            " --scenario gives them one"
        )
    for (scenario, *_), turns in found.items():
        yield _Conversation(replayed.source, scenario, tuple(turns))


def _problems(conversation: _Conversation, wanted: Wanted) -> Iterator[Problem]:
    for turn in conversation.turns:
        if turn.error and not wanted.failed:
            text = (
                f"found a failed invocation ({turn.error_type or 'error'}, trace {turn.trace_id}),"
                " expected success, or --allow-failed"
            )
            yield Problem(
                conversation.source, None, (), f"scenario {conversation.scenario}: {text}"
            )
    places = [place for place, _ in _placed(conversation.turns)]
    if places != list(range(len(places))):
        text = (
            f"found the turns {', '.join(map(str, places))} of a conversation, expected every turn"
            " from 0 once"
        )
        yield Problem(conversation.source, None, (), f"scenario {conversation.scenario}: {text}")


def _placed(turns: Sequence[Invocation]) -> list[tuple[int, Invocation]]:
    """The invocations with their places in the conversation: those that they state themselves, else
    those by their start.
    """
    if len(turns) == 1 and turns[0].conversation_id is None:
        return [(0, turns[0])]
    places = [(index if turn.turn is None else turn.turn, turn) for index, turn in enumerate(turns)]
    return sorted(places, key=lambda placed: placed[0])


def _reference(conversation: _Conversation, wanted: Wanted, notes: list[str]) -> Reference:
    turns = [turn for _, turn in _placed(conversation.turns)]
    doubtful = sorted({flag for turn in turns for flag in turn.flags & _DOUBTFUL})
    if doubtful:
        notes.append(
            conversation.note(
                f"content was {' and '.join(doubtful)} before it arrived, so look through what was"
                " recorded"
            )
        )
    return Reference(
        conversation.scenario, tuple(_turn(conversation, turn, wanted, notes) for turn in turns)
    )


def _turn(
    conversation: _Conversation, turn: Invocation, wanted: Wanted, notes: list[str]
) -> ReferenceTurn:
    unknown = tools_unknown(turn)
    if unknown:
        notes.append(
            conversation.note(f"no tool calls are expected or forbidden: {unknown.explanation}")
        )
    calls = None if unknown else joined(pieces(_expected(call, wanted) for call in turn.tool_calls))
    lost = [call.name for call in calls or () if wanted.arguments and call.arguments is None]
    if lost:
        notes.append(
            conversation.note(
                f"any arguments will do for {', '.join(lost)}: they were not recorded, or are no"
                " plain JSON"
            )
        )
    if wanted.response and not turn.final_response:
        notes.append(conversation.note("no response was recorded, so none is expected"))
    return ReferenceTurn(
        _whole(turn.user_input), calls, _whole(turn.final_response) if wanted.response else None
    )


def _expected(call: ToolCall, wanted: Wanted) -> ExpectedCall:
    if wanted.arguments and isinstance(call.arguments, dict) and _is_plain(call.arguments):
        return ExpectedCall(call.name, call.arguments, group=call.group)
    return ExpectedCall(call.name, group=call.group)


def _whole(text: str | None) -> str | None:
    """Text without half surrogate pairs, which no file can hold; `None` when it is empty or not
    known.
    """
    return text.encode("utf-8", "replace").decode() if text else None


def _is_plain(value: Json, level: int = 0) -> bool:
    """Whether a value is JSON that a reference file may hold; what was decoded from a Python `repr`
    may be more.
    """
    match value:
        case None | bool() | int() | float():
            return True
        case str():
            return not value or _whole(value) == value
        case dict():
            return level < _MAX_LEVELS and all(
                isinstance(key, str) and _is_plain(key) and _is_plain(item, level + 1)
                for key, item in value.items()
            )
        case list():
            return level < _MAX_LEVELS and all(_is_plain(item, level + 1) for item in value)
    return False


def _with_another(
    first: Reference,
    other: Reference,
    conversation: _Conversation,
    wanted: Wanted,
    notes: list[str],
) -> Reference:
    """The first reference, with the trajectories of the other one as alternatives where that is
    wanted and possible.
    """
    if not wanted.alternatives:
        alone = (
            ""
            if conversation.turns[0].conversation_id
            else ", of an invocation without conversation id, which is no second turn"
        )
        notes.append(
            conversation.note(
                f"left out another trajectory than the first{alone}; --alternatives keeps it"
            )
        )
        return first
    pairs = list(zip(first.turns, other.turns, strict=False))
    if len(first.turns) != len(other.turns) or any(
        mine.tool_calls is None or its.tool_calls is None for mine, its in pairs
    ):
        notes.append(
            conversation.note(
                "left out a conversation with other turns than the first, which cannot be its"
                " alternative"
            )
        )
        return first
    return replace(
        first, turns=tuple(_with_alternative(mine, its.tool_calls or ()) for mine, its in pairs)
    )


def _with_alternative(turn: ReferenceTurn, calls: tuple[ExpectedCall, ...]) -> ReferenceTurn:
    known = [_trajectory(one) for one in (turn.tool_calls or (), *turn.alternatives)]
    return (
        turn
        if _trajectory(calls) in known
        else replace(turn, alternatives=(*turn.alternatives, calls))
    )


def _trajectories(reference: Reference) -> list[Json]:
    return [
        None if turn.tool_calls is None else _trajectory(turn.tool_calls)
        for turn in reference.turns
    ]


def _trajectory(calls: Iterable[ExpectedCall]) -> list[list[str]]:
    """What is the same for the same trajectory, however the calls of a group are ordered."""
    return [
        sorted(json.dumps([call.name, call.arguments], sort_keys=True) for call in piece)
        for piece in pieces(calls)
    ]
