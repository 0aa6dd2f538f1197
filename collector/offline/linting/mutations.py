"""Spoils good runs in small ways, to see which criteria notice.

Each mutation is what a worse release of an agent might do. All are deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from pathgauge.scorers.matching.equality import canonical, opened
from pathgauge.scorers.types import Invocation, Json, ToolCall

MAX_PLACES = 5
"""Places of a run that are spoiled in the same way."""
OTHER_ANSWER = "Sorry, I cannot help with that."
_NUMBER = re.compile(r"\d+")


class Mutant(NamedTuple):
    """A spoiled run."""

    kind: str
    where: str
    """What was changed, for people."""
    invocation: Invocation
    of_answer: bool = False


def mutants(run: Invocation) -> Iterator[Mutant]:
    """All spoiled versions of a run."""
    calls = run.tool_calls
    for kind, changed in _CALLS.items():
        for where, new in _spread(list(changed(calls))):
            yield Mutant(kind, where, replace(run, tool_calls=new))
    if run.final_response and run.final_response.strip():
        for kind, answered in _ANSWERS.items():
            answer = answered(run.final_response)
            if answer != run.final_response:
                new_run = replace(run, final_response=answer)
                yield Mutant(kind, "the answer", new_run, of_answer=True)


_Calls = tuple[ToolCall, ...]
_Changed = Iterator[tuple[str, _Calls]]


def _spread(found: Sequence[tuple[str, _Calls]]) -> list[tuple[str, _Calls]]:
    """At most `MAX_PLACES` of them, evenly."""
    if len(found) <= MAX_PLACES:
        return list(found)
    return [found[index * len(found) // MAX_PLACES] for index in range(MAX_PLACES)]


def _dropped(calls: _Calls) -> _Changed:
    for at, call in enumerate(calls):
        yield call.name, (*calls[:at], *calls[at + 1 :])


def _repeated(calls: _Calls) -> _Changed:
    for at, call in enumerate(calls):
        yield call.name, (*calls[: at + 1], call, *calls[at + 1 :])


def _swapped(calls: _Calls) -> _Changed:
    for at, (first, second) in enumerate(pairwise(calls)):
        if _content(first) != _content(second):
            swapped = replace(second, group=None), replace(first, group=None)
            yield f"{first.name} and {second.name}", (*calls[:at], *swapped, *calls[at + 2 :])


def _of_another_tool(calls: _Calls) -> _Changed:
    for at, call in enumerate(calls):
        other = replace(call, name=f"{call.name}_other")
        yield call.name, (*calls[:at], other, *calls[at + 1 :])


def _with_argument(calls: _Calls, change: Callable[[str, Json], dict[str, Json]]) -> _Changed:
    for at, call in enumerate(calls):
        arguments = opened(call.arguments)
        if not isinstance(arguments, Mapping):
            continue
        for name, value in arguments.items():
            others = {key: item for key, item in arguments.items() if key != name}
            changed = replace(call, arguments={**others, **change(name, value)})
            yield f"{call.name}.{name}", (*calls[:at], changed, *calls[at + 1 :])


def _argument_changed(calls: _Calls) -> _Changed:
    return _with_argument(calls, lambda name, value: {name: _other(value)})


def _argument_dropped(calls: _Calls) -> _Changed:
    return _with_argument(calls, lambda name, value: {})


def _argument_added(calls: _Calls) -> _Changed:
    for at, call in enumerate(calls):
        arguments = opened(call.arguments)
        if isinstance(arguments, Mapping):
            added = replace(call, arguments={**arguments, "unexpected": True})
            yield call.name, (*calls[:at], added, *calls[at + 1 :])


def _other(value: Json) -> Json:
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value * 10 + 1
        case str():
            return f"{value}x"
        case list():
            return [*value, "x"]
        case dict():
            return {**value, "unexpected": True}
    return "x"


def _content(call: ToolCall) -> tuple[str, object]:
    return call.name, canonical(opened(call.arguments))


def _halved(answer: str) -> str:
    words = answer.split()
    return " ".join(words[: len(words) // 2])


def _other_number(answer: str) -> str:
    return _NUMBER.sub(lambda found: str(int(found[0][:18]) + 1), answer, count=1)


_CALLS: Mapping[str, Callable[[_Calls], _Changed]] = {
    "drop a call": _dropped,
    "repeat a call": _repeated,
    "swap two calls": _swapped,
    "call another tool": _of_another_tool,
    "change an argument": _argument_changed,
    "drop an argument": _argument_dropped,
    "add an argument": _argument_added,
}
_ANSWERS: Mapping[str, Callable[[str], str]] = {
    "empty the answer": lambda _: "",
    "refuse in the answer": lambda _: OTHER_ANSWER,
    "halve the answer": _halved,
    "change a number of the answer": _other_number,
}
KINDS = (*_CALLS, *_ANSWERS)
