"""Scores whether calls repeated with the same idempotency key were carried out only once.

A repeated call must return the status `already_processed` and the data of the first call. Failed
calls are ignored, because they carried out nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.calls import as_object, call_names, failed
from pathgauge.scorers.matching.equality import canonical
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.wording import and_more, counted
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score, ToolCall


class _Repeat(NamedTuple):
    """A call with the same tool and key as an earlier call."""

    at: int
    first: int
    problem: str | None
    """`None`: answered correctly. Empty: not known, because results were not recorded."""


@dataclass(frozen=True)
class Idempotency(Share):
    """1 if no repeated call with the same idempotency key was carried out again, else 0."""

    name: ClassVar[str] = "idempotency"

    key: str = "idempotency_key"
    """The argument, or the member of the result, that holds the key."""
    status: str = "already_processed"
    """The `status` in the result of a repeated call."""

    def __post_init__(self) -> None:
        for option, value in (("key", self.key), ("status", self.status)):
            if not value.strip():
                raise ValueError(f"{option}: found {value!r}, expected text that is not blank")

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used. If no key was used twice, there is no
        value.
        """
        try:
            return self._score(actual, call_names(actual))
        except RecursionError:
            return Score.not_evaluated("too_long", "results nested too deep to be compared")

    def _score(self, actual: Invocation, names: Sequence[str]) -> Score:
        keys = [self._key(call) for call in actual.tool_calls]
        repeats = list(self._repeats(actual.tool_calls, names, keys))
        details: dict[str, Json] = {
            "repeats": [[repeat.at, repeat.first, names[repeat.at]] for repeat in repeats]
        }
        if wrong := [repeat for repeat in repeats if repeat.problem]:
            at, first, problem = wrong[0]
            more = and_more(wrong)
            return Score(
                0.0,
                None,
                f"{listed([names[at]])} (call {at}) repeats call {first}, but {problem}{more}",
                details,
            )
        if unknown := tools_unknown(actual):
            return unknown
        if any(repeat.problem is not None for repeat in repeats):
            return Score.not_evaluated("results_not_recorded", **details)
        if _keys_missing(actual.tool_calls, names, keys):
            return Score.not_evaluated(
                "args_not_recorded", "not recorded whether calls share a key", **details
            )
        if not repeats:
            return Score.not_evaluated("not_applicable", f"no {self.key} was used twice")
        return Score(
            1.0, None, f"{counted(len(repeats), 'repeated call')} found the work done", details
        )

    def _key(self, call: ToolCall) -> Hashable:
        """The key of a call in canonical form; `None` if it has none."""
        for place in (call.arguments, call.result):
            key = as_object(place).get(self.key)
            if key not in (None, ""):
                return canonical(key)
        return None

    def _repeats(
        self, calls: Sequence[ToolCall], names: Sequence[str], keys: Sequence[Hashable]
    ) -> Iterator[_Repeat]:
        made: dict[tuple[str, Hashable], int] = {}
        succeeded: dict[tuple[str, Hashable], int] = {}
        for index, (call, name, key) in enumerate(zip(calls, names, keys, strict=True)):
            if key is None or failed(call):
                continue
            first = made.setdefault((name, key), index)
            if calls[first].result is None:  # it may have failed, so that the next one is the first
                first = succeeded.get((name, key), first)
            if first != index:
                yield _Repeat(index, first, self._problem(calls[first], call))
            if call.result is not None:
                succeeded.setdefault((name, key), index)

    def _problem(self, first: ToolCall, repeated: ToolCall) -> str | None:
        if repeated.result is None or first.result is None:
            return ""
        result = as_object(repeated.result)
        if result.get("status") != self.status:
            return f"was not answered with the status {self.status}"
        if _data(as_object(first.result)) != _data(result):
            return "was answered with other data"
        return None


def _data(result: Mapping[str, Json]) -> Hashable:
    return canonical(result.get("data"))


def _keys_missing(
    calls: Sequence[ToolCall], names: Sequence[str], keys: Sequence[Hashable]
) -> bool:
    """Whether several calls of one tool may share a key that was not recorded."""
    unknown = {
        name
        for call, name, key in zip(calls, names, keys, strict=True)
        if key is None and call.arguments is None
    }
    return any(names.count(name) > 1 for name in unknown)
