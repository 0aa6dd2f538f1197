"""Temporal rules over the tool calls of one invocation, each checked in one pass.

Calls are in the order in which the model requested them. An invocation ends, so a call that had to
follow and did not is a violation.
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
from pathgauge.scorers.tool_use.approval import ApprovalState, approval_state
from pathgauge.scorers.tool_use.confirmation import CONFIRM, confirm_name
from pathgauge.scorers.types import Json, Reason, ToolCall


class Violations(NamedTuple):
    """The positions of the calls that violate a rule."""

    certain: list[int]
    possible: list[int]
    """The violations in the worst case of everything that was not recorded."""
    unknown: Reason | None = None
    """What was not recorded, if that can make a difference."""


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
    """[A, X, B]: no call of X after one of A and before the next of B. Without a later B, X is
    allowed.
    """
    at_most: tuple[str, int] | None = None
    """[T, n]: at most n calls of T."""
    requires_confirmation: str | None = None
    """T: each call of T has a confirmation of its own before it, unless the call only requests one
    (`pending_confirmation`) or is rejected.
    """
    confirmed_by: str = CONFIRM
    """The tool that confirms, in `requires_confirmation`; `{tool}` stands for T."""
    when: Mapping[str, Json] | None = None
    """Check only calls with these arguments, which may be matchers. It applies to the calls of T,
    of B in `precedes`, of A in `responds` and of X in `absent_between`.
    """
    name: str | None = None
    """The name of the rule in explanations."""

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
            _ = self._condition  # raises ValueError for an invalid condition

    @cached_property
    def form(self) -> str:
        """The field that holds the rule, such as `never`."""
        return next(form for form in _FORMS if getattr(self, form) is not None)

    @cached_property
    def tools(self) -> tuple[str, ...]:
        """The tools of the rule, in its order."""
        value = getattr(self, self.form)
        items = (value,) if isinstance(value, str) else value
        return tuple(tool_name(item) for item in items if isinstance(item, str))

    @property
    def label(self) -> str:
        """The name of the rule, else its form and arguments."""
        limit = self.at_most[1:] if self.at_most else ()
        return self.name or f"{self.form} {', '.join([*self.tools, *map(str, limit)])}"

    @property
    def violations_are_final(self) -> bool:
        """Whether a violation stays one when calls are missing from the telemetry."""
        return self.never is not None or self.at_most is not None

    def violations(self, calls: Sequence[ToolCall], names: Sequence[str]) -> Violations:
        """Check calls with these names. Raises `TooLongError` or `RecursionError` when arguments
        cannot be compared.
        """
        form = _FORMS[self.form]
        tool = self.tools[form.checked]
        met = {at: self._met(calls[at]) for at, name in enumerate(names) if name == tool}
        best = {at for at, holds in met.items() if holds}
        certain = list(form.violating(self, _Trace(calls, names, best, optimistic=True)))
        arguments_known = None not in met.values()
        if arguments_known and (not form.reads_results or all(map(outcome_known, calls))):
            return Violations(certain, certain)
        worst = {at for at, holds in met.items() if holds is not False}
        possible = list(form.violating(self, _Trace(calls, names, worst, optimistic=False)))
        if arguments_known:
            return Violations(certain, possible, "results_not_recorded")
        return Violations(certain, possible, "args_not_recorded")

    @cached_property
    def _condition(self) -> AtLeast:
        try:
            return AtLeast(read(self.when))
        except ValueError as error:
            raise ValueError(f"when: {error}") from error

    def _met(self, call: ToolCall) -> bool | None:
        """Whether the condition holds for a call; `None` if its arguments were not recorded."""
        if self.when is None:
            return True
        if call.arguments is None:
            return None
        return self._condition.accepts(as_object(call.arguments))


class _Trace(NamedTuple):
    calls: Sequence[ToolCall]
    names: Sequence[str]
    checked: set[int]
    """The positions of the calls of the checked tool that meet the condition."""
    optimistic: bool
    """Whether to assume the best or the worst of results that were not recorded."""

    def approval_state(self, at: int, best: ApprovalState, worst: ApprovalState) -> ApprovalState:
        """The state of a call; `best` or `worst` if its result was not recorded."""
        if state := approval_state(self.calls[at]):
            return state
        return best if self.optimistic else worst


def _never(rule: Rule, trace: _Trace) -> Iterator[int]:
    yield from sorted(trace.checked)


def _at_most(rule: Rule, trace: _Trace) -> Iterator[int]:
    limit = rule.at_most[1] if rule.at_most else 0
    yield from sorted(trace.checked)[limit:]


def _precedes(rule: Rule, trace: _Trace) -> Iterator[int]:
    earlier = rule.tools[0]
    first = trace.names.index(earlier) if earlier in trace.names else len(trace.names)
    yield from sorted(at for at in trace.checked if at < first)


def _responds(rule: Rule, trace: _Trace) -> Iterator[int]:
    responses = (at for at, name in enumerate(trace.names) if name == rule.tools[1])
    last = max(responses, default=-1)
    yield from sorted(at for at in trace.checked if at >= last)


def _absent_between(rule: Rule, trace: _Trace) -> Iterator[int]:
    opening, _, closing = rule.tools
    between: list[int] | None = None
    for at, name in enumerate(trace.names):
        if name == closing and between is not None:
            yield from between
            between = None
        if between is not None and at in trace.checked:
            between.append(at)
        if name == opening and between is None:
            between = []


def _requires_confirmation(rule: Rule, trace: _Trace) -> Iterator[int]:
    confirming = confirm_name(rule.confirmed_by, rule.tools[0])
    confirmed = False
    for at, name in enumerate(trace.names):
        if name == confirming:
            state = trace.approval_state(at, best="done", worst="rejected")
            confirmed = confirmed or state == "done"
        elif at in trace.checked:
            state = trace.approval_state(at, best="pending", worst="done")
            if state in ("done", "failed") and not confirmed:
                yield at
            if state == "done":
                confirmed = False


class _Form(NamedTuple):
    checked: int
    """The index in `Rule.tools` of the tool whose calls are checked."""
    violating: Callable[[Rule, _Trace], Iterator[int]]
    reads_results: bool = False


_FORMS: Mapping[str, _Form] = {
    "never": _Form(0, _never),
    "precedes": _Form(1, _precedes),
    "responds": _Form(0, _responds),
    "absent_between": _Form(1, _absent_between),
    "at_most": _Form(0, _at_most),
    "requires_confirmation": _Form(0, _requires_confirmation, reads_results=True),
}
