"""Temporal rules: the calls of an invocation come in, the positions of those that break a rule go
out. One pass over the calls each.

The calls stand in the order in which the model asked for them, and end somewhere: what had to
follow and did not is a breach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pathgauge.scorers.authoring.options import FrozenMapping, check_tool
from pathgauge.scorers.matching.calls import as_object, outcome_known
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.matchers import AtLeast, read
from pathgauge.scorers.tool_use.approval import approval_state
from pathgauge.scorers.tool_use.confirmation import CONFIRM, confirm_name
from pathgauge.scorers.types import Json, Reason, ToolCall


class Breaches(NamedTuple):
    """The positions of the calls that break a rule."""

    certain: list[int]
    possible: list[int]
    """The same, if everything that was not recorded were for the worst."""
    unknown: Reason | None = None
    """What was not recorded, where that may make a difference."""


@dataclass(frozen=True)
class Rule:
    """One rule: exactly one of `never`, `precedes`, `responds`, `absent_between`, `at_most` and
    `requires_confirmation`.
    """

    never: str | None = None
    """T: no call of T."""
    precedes: tuple[str, str] | None = None
    """[A, B]: no call of B before the first of A."""
    responds: tuple[str, str] | None = None
    """[A, B]: after each call of A comes one of B."""
    absent_between: tuple[str, str, str] | None = None
    """[A, X, B]: no call of X after one of A and before the next of B, if that comes."""
    at_most: tuple[str, int] | None = None
    """[T, n]: at most n calls of T."""
    requires_confirmation: str | None = None
    """T: each call of T has a confirmation of its own before it, unless it only asks for one
    (`pending_confirmation`) or is rejected.
    """
    confirmed_by: str = CONFIRM
    """The tool that confirms, in `requires_confirmation`; `{tool}` stands for T."""
    when: Mapping[str, Json] | None = None
    """Judge only calls with these arguments, which may be matchers: of T, of B in `precedes`, A in
    `responds`, X in `absent_between`.
    """
    name: str | None = None
    """What to call the rule in explanations."""

    def __post_init__(self) -> None:
        given = [form for form in _FORMS if getattr(self, form) is not None]
        if len(given) != 1:
            raise ValueError(
                f"found {' and '.join(given) or 'no rule'}, expected one of {', '.join(_FORMS)}"
            )
        for tool in (*self.tools, self.confirmed_by):
            check_tool(given[0], tool)
        if self.at_most is not None and self.at_most[1] < 0:
            raise ValueError(
                f"at_most: found {self.at_most[1]}, expected a number that is not negative"
            )
        if self.confirmed_by != CONFIRM and self.requires_confirmation is None:
            raise ValueError(
                f"confirmed_by: found beside {given[0]}, expected beside requires_confirmation"
            )
        if self.when is not None:
            object.__setattr__(self, "when", FrozenMapping(self.when))
            _ = self._condition  # raises for what is no condition

    @cached_property
    def form(self) -> str:
        """Which of the rules it is."""
        return next(form for form in _FORMS if getattr(self, form) is not None)

    @cached_property
    def tools(self) -> tuple[str, ...]:
        """The tools that it speaks of, in the order of the rule."""
        written = getattr(self, self.form)
        return tuple(
            tool_name(tool)
            for tool in ((written,) if isinstance(written, str) else written)
            if isinstance(tool, str)
        )

    @property
    def label(self) -> str:
        """What to call it."""
        limit = self.at_most[1:] if self.at_most else ()
        return self.name or f"{self.form} {', '.join([*self.tools, *map(str, limit)])}"

    @property
    def lasting(self) -> bool:
        """Whether what breaks it breaks it whatever else was called."""
        return self.never is not None or self.at_most is not None

    def breaches(self, calls: Sequence[ToolCall], names: Sequence[str]) -> Breaches:
        """Judge calls with these names. Raises `TooLongError` or `RecursionError` when arguments
        cannot be compared.
        """
        form = _FORMS[self.form]
        tool = self.tools[form.judged]
        met = {at: self._met(calls[at]) for at, name in enumerate(names) if name == tool}
        certain = list(
            form.broken(
                self, _Trace(calls, names, {at for at, holds in met.items() if holds}, hopeful=True)
            )
        )
        if None not in met.values() and (not form.reads_results or all(map(outcome_known, calls))):
            return Breaches(certain, certain)
        worst = {at for at, holds in met.items() if holds is not False}
        possible = list(form.broken(self, _Trace(calls, names, worst, hopeful=False)))
        return Breaches(
            certain,
            possible,
            "args_not_recorded" if None in met.values() else "results_not_recorded",
        )

    @cached_property
    def _condition(self) -> AtLeast:
        try:
            return AtLeast(read(self.when))
        except ValueError as error:
            raise ValueError(f"when: {error}") from error

    def _met(self, call: ToolCall) -> bool | None:
        """Whether the condition holds for a call; `None` when its arguments were not recorded."""
        if self.when is None:
            return True
        return (
            None if call.arguments is None else self._condition.accepts(as_object(call.arguments))
        )


class _Trace(NamedTuple):
    calls: Sequence[ToolCall]
    names: Sequence[str]
    judged: set[int]
    """The calls of the judged tool that meet the condition."""
    hopeful: bool
    """Whether results that were not recorded are taken for the best, or for the worst."""


def _never(rule: Rule, trace: _Trace) -> Iterator[int]:
    yield from sorted(trace.judged)


def _at_most(rule: Rule, trace: _Trace) -> Iterator[int]:
    most = rule.at_most[1] if rule.at_most else 0
    yield from sorted(trace.judged)[most:]


def _precedes(rule: Rule, trace: _Trace) -> Iterator[int]:
    first = trace.names.index(rule.tools[0]) if rule.tools[0] in trace.names else len(trace.names)
    yield from sorted(index for index in trace.judged if index < first)


def _responds(rule: Rule, trace: _Trace) -> Iterator[int]:
    last = max(
        (index for index, name in enumerate(trace.names) if name == rule.tools[1]), default=-1
    )
    yield from sorted(index for index in trace.judged if index >= last)


def _absent_between(rule: Rule, trace: _Trace) -> Iterator[int]:
    opening, _, closing = rule.tools
    between: list[int] | None = None
    for index, name in enumerate(trace.names):
        if name == closing and between is not None:
            yield from between
            between = None
        if between is not None and index in trace.judged:
            between.append(index)
        if name == opening and between is None:
            between = []


def _requires_confirmation(rule: Rule, trace: _Trace) -> Iterator[int]:
    confirming = confirm_name(rule.confirmed_by, rule.tools[0])
    confirmed = False
    for index, name in enumerate(trace.names):
        if name == confirming:
            confirmed = (
                confirmed
                or (approval_state(trace.calls[index]) or ("done" if trace.hopeful else "rejected"))
                == "done"
            )
        elif index in trace.judged:
            ended = approval_state(trace.calls[index]) or ("pending" if trace.hopeful else "done")
            if ended in ("done", "failed"):
                if not confirmed:
                    yield index
                confirmed = confirmed and ended == "failed"


class _Form(NamedTuple):
    judged: int
    """Which of the tools of the rule is the one whose calls are judged."""
    broken: Callable[[Rule, _Trace], Iterator[int]]
    reads_results: bool = False


_FORMS: Mapping[str, _Form] = {
    "never": _Form(0, _never),
    "precedes": _Form(1, _precedes),
    "responds": _Form(0, _responds),
    "absent_between": _Form(1, _absent_between),
    "at_most": _Form(0, _at_most),
    "requires_confirmation": _Form(0, _requires_confirmation, reads_results=True),
}
