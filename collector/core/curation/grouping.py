"""Groups invocations that should have a reference in common: by scenario id, else by a similar
input and the same tools.

Invocations that failed or whose telemetry is not complete are no examples; they are counted. What
people say of an invocation takes precedence over the criteria: it is the truth that these are for.

Without one of its turns a conversation is no example either, because the turns after it would stand
for earlier ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pathgauge.collector.core.curation.runs import Run
from pathgauge.collector.core.feedback.opinion import NOBODY, Opinion
from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.responses.tokens import tokens
from pathgauge.scorers.types import Flag, Invocation

MAX_CALLS = 100
"""Of a run: all pairs of calls are compared."""
_SIMILAR = 0.5
"""Share of words that inputs have in common, and half of it for tools."""
_MAX_GROUPS = 500
"""Of invocations without a scenario id."""
_MAX_WORDS = 6
"""Of a scenario id that is made of an input."""
_MAX_CHARS = 20_000
"""Of an input that is compared."""
BAD = "called bad by people"
"""Why invocations are left out."""
_INCOMPLETE = "in conversations with such a turn"
_CUT: frozenset[Flag] = frozenset({"truncated", "redacted", "missing_root", "content_missing"})


class Observed(NamedTuple):
    """An invocation of the traffic."""

    invocation: Invocation
    failed: bool = False
    """Whether a criterion failed."""
    matched: bool = False
    """Whether its scenario has a reference."""
    turn: int | None = None
    """Its turn in the conversation, if the collector has numbered it."""
    people: Opinion = NOBODY


@dataclass(slots=True)
class Group:
    """The runs of one scenario."""

    scenario_id: str
    turns: list[list[Run]] = field(default_factory=list)
    """Of each turn the runs, in the same order in each."""
    notes: list[str] = field(default_factory=list)
    bad: list[Run] = field(default_factory=list)
    """Single invocations that people call bad, and that would be among the runs otherwise."""


@dataclass(slots=True)
class Grouped:
    """All groups, the largest first, and how many invocations are in none."""

    groups: list[Group]
    left_out: Counter[str]


def grouped(observed: Iterable[Observed], *, all_scenarios: bool = False) -> Grouped:
    """Group the invocations. With `all_scenarios`, also those whose scenario has a reference."""
    left_out: Counter[str] = Counter()
    bad: list[Observed] = []
    named: dict[str, list[Observed]] = defaultdict(list)
    nameless = _Similar()
    reasons = [(one, _unusable(one, all_scenarios)) for one in sorted(observed, key=_time)]
    incomplete = {_conversation(one) for one, why in reasons if why is not None}
    for one, why in reasons:
        if why is not None:
            left_out[why] += 1
            if why == BAD:
                bad.append(one)
        elif _is_turn(one) and _conversation(one) in incomplete:
            left_out[_INCOMPLETE] += 1
        elif one.invocation.scenario_id is not None:
            named[one.invocation.scenario_id].append(one)
        elif not nameless.add(one):
            left_out["of too many different kinds"] += 1
    of_scenarios = {scenario: _conversations(scenario, some) for scenario, some in named.items()}
    of_kinds = nameless.groups(set(named))
    _add_bad(bad, of_scenarios, of_kinds, nameless)
    groups = [*of_scenarios.values(), *of_kinds]
    return Grouped(sorted(groups, key=lambda one: (-len(one.turns[0]), one.scenario_id)), left_out)


def _unusable(one: Observed, all_scenarios: bool) -> str | None:
    invocation = one.invocation
    if one.matched and not all_scenarios:
        return "with a reference"
    if invocation.error or (one.failed and one.people.verdict is None):
        return "failed"
    if "scenario_conflict" in invocation.flags:
        return "with contradicting scenario ids"
    if tools_unknown(invocation) is not None or invocation.flags & _CUT:
        return "with incomplete telemetry"
    if len(invocation.tool_calls) > MAX_CALLS:
        return f"with more than {MAX_CALLS} calls"
    return BAD if one.people.verdict is False else None


def _is_turn(one: Observed) -> bool:
    """Whether it is known to be a turn of a conversation in a scenario."""
    return None not in (one.invocation.scenario_id, one.invocation.conversation_id)


def _conversation(one: Observed) -> tuple[str | None, ...]:
    """What tells the conversations of a scenario apart; without an id, each invocation is one."""
    invocation = one.invocation
    if invocation.conversation_id is None:
        return invocation.scenario_id, invocation.trace_id, invocation.span_id
    return invocation.scenario_id, invocation.conversation_id


def _time(one: Observed) -> tuple[int, str, str]:
    invocation = one.invocation
    return invocation.start_ns or 0, invocation.trace_id, invocation.span_id


def _conversations(scenario: str, observed: Sequence[Observed]) -> Group:
    """The runs by turn. Conversations with an unusual number of turns are left out."""
    found: dict[tuple[str | None, ...], list[Observed]] = defaultdict(list)
    for one in observed:
        found[_conversation(one)].append(one)
    conversations = [_in_order(turns) for turns in found.values()]
    lengths = Counter(map(len, conversations))
    usual = max(lengths, key=lambda length: (lengths[length], length))
    group = Group(scenario)
    others = len(conversations) - lengths[usual]
    if others:
        group.notes.append(
            f"left out {counted(others, 'conversation')} without {counted(usual, 'turn')}"
        )
    chosen = [turns for turns in conversations if len(turns) == usual]
    group.turns = [[_run(turns[index]) for turns in chosen] for index in range(usual)]
    return group


def _in_order(turns: Sequence[Observed]) -> list[Observed]:
    def place(numbered: tuple[int, Observed]) -> int:
        index, one = numbered
        known = one.invocation.turn if one.turn is None else one.turn
        return index if known is None else known

    return [one for _, one in sorted(enumerate(turns), key=place)]


def _run(one: Observed) -> Run:
    return Run.of(one.invocation, called_good=one.people.verdict is True)


@dataclass(slots=True)
class _Kind:
    """Invocations without scenario ids that resemble the first one."""

    words: frozenset[str]
    tools: frozenset[str]
    observed: list[Observed]


class _Similar:
    """Groups invocations around the first of each kind."""

    def __init__(self) -> None:
        self._kinds: list[_Kind] = []

    def add(self, one: Observed) -> bool:
        place = self.place(one.invocation)
        if place is not None:
            self._kinds[place].observed.append(one)
        elif len(self._kinds) < _MAX_GROUPS:
            self._kinds.append(_Kind(*_marks(one.invocation), [one]))
        else:
            return False
        return True

    def place(self, invocation: Invocation) -> int | None:
        """The number of the kind that an invocation resembles."""
        words, tools = _marks(invocation)
        for place, kind in enumerate(self._kinds):
            if (
                _likeness(words, kind.words) >= _SIMILAR
                and _likeness(tools, kind.tools) >= _SIMILAR / 2
            ):
                return place
        return None

    def groups(self, taken: set[str]) -> list[Group]:
        """One for each kind, in their order, with a scenario id made of words that most inputs
        have.
        """
        found = []
        for kind in self._kinds:
            name = _unused(_name_of(kind), taken)
            taken.add(name)
            note = "the traffic has no scenario id: set this one, or scenario.match_user_input"
            runs = list(map(_run, kind.observed))
            found.append(Group(name, turns=[runs], notes=[note]))
        return found


def _marks(invocation: Invocation) -> tuple[frozenset[str], frozenset[str]]:
    words = frozenset(_words(invocation.user_input or ""))
    return words, frozenset(tool_name(call.name) for call in invocation.tool_calls)


def _add_bad(
    bad: Iterable[Observed],
    of_scenarios: Mapping[str, Group],
    of_kinds: Sequence[Group],
    nameless: _Similar,
) -> None:
    """Add the invocations that people call bad to their groups, as far as there are some."""
    for one in bad:
        scenario = one.invocation.scenario_id
        if scenario is not None:
            group = of_scenarios.get(scenario)
        else:
            place = nameless.place(one.invocation)
            group = None if place is None else of_kinds[place]
        if group is not None:
            group.bad.append(_run(one))


def _name_of(kind: _Kind) -> str:
    inputs = [one.invocation.user_input or "" for one in kind.observed]
    counts = Counter(word for text in inputs for word in set(_words(text)))
    common = [word for word in _words(inputs[0]) if counts[word] * 2 > len(inputs)]
    longer = [word for word in dict.fromkeys(common) if len(word) > 2]
    return "-".join((longer or sorted(kind.tools) or ["unnamed"])[:_MAX_WORDS])


def _unused(name: str, taken: set[str]) -> str:
    number = 2
    unused = name
    while unused in taken:
        unused = f"{name}-{number}"
        number += 1
    return unused


def _words(text: str) -> list[str]:
    """The words without numbers and codes, which differ between inputs of a kind."""
    words = tokens(text[:_MAX_CHARS].casefold(), stemmer=False)
    return [word for word in words if not any(map(str.isdigit, word))]


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the elements that both have; 1 for two empty sets."""
    return len(one & other) / len(one | other) if one | other else 1.0
