"""Finds the tokens of each model call where an instrumentation adds those of several calls up.

A client that carries out tools itself calls the model in a loop. If each call states the tokens of
all calls of its loop so far, the differences are its own. If the next call lies inside the one
before, which ends after it, both state the total of both: then the total is known, and the tokens
of each call are not.

Whether calls belong to one loop is seen by the tool between them. If its span was lost, the tokens
of a call after one that asked for tools are unknown. Counts that contradict this are flagged and
not used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.scorers.types import Flag, ModelCall


class Usage(NamedTuple):
    """Model calls with their own tokens, and the same calls as their tokens can be summed up."""

    models: tuple[ModelCall, ...]
    to_sum: tuple[ModelCall, ...]
    """Calls that only state a total together are one call here."""


def own_usage(
    models: Sequence[ModelCall], steps: Sequence[Step], tools: Sequence[Node], flags: set[Flag]
) -> Usage:
    """`models` are the model calls of the `steps` as stated; `tools` are ordered by start. Adds to
    `flags` if counts contradict each other, or if a tool between two calls was lost.
    """
    if not any(_hook(step.node) for step in steps):
        return Usage(tuple(models), tuple(models))
    loops = _Loops(models, steps, tools)
    for number in range(len(steps)):
        loops.add(number)
    flags.update(loops.flags)
    return Usage(tuple(loops.own), tuple(call for call in loops.to_sum if call is not None))


class _Loops:
    """The loops of one invocation."""

    def __init__(
        self, stated: Sequence[ModelCall], steps: Sequence[Step], tools: Sequence[Node]
    ) -> None:
        self.own = list(stated)
        self.to_sum: list[ModelCall | None] = list(stated)
        self.flags: set[Flag] = set()
        self._stated = stated
        self._nodes = [step.node for step in steps]
        self._numbers = {id(node): number for number, node in enumerate(self._nodes)}
        self._last: dict[int, int] = {}
        """The last call below each parent, by the id of the parent object."""
        self._tools: dict[int, list[Node]] = defaultdict(list)
        for tool in tools:
            self._tools[id(tool.parent)].append(tool)

    def add(self, number: int) -> None:
        """Find the tokens of one more call, in the order of their starts."""
        node = self._nodes[number]
        hook = _hook(node)
        if hook is None or _is_unknown(self._stated[number]):
            return
        around = self._numbers.get(id(node.parent))
        last = around if around is not None else self._last.get(id(node.parent))
        self._last[id(node.parent)] = number
        if last is None:
            return
        tool = self._tool_between(last, node)
        if tool is not None and not hook(tool.span):
            return
        if around is not None:
            self._join(number, last, tool)
        elif tool is not None:
            self._subtract(number, last)
        elif _asked_for_tools(self._nodes[last]):
            self._set(number, None, None)

    def _tool_between(self, last: int, node: Node) -> Node | None:
        """The last tool below the same parent that started between two calls."""
        tools = self._tools[id(node.parent)]
        at = bisect_right(tools, node.span.start_ns, key=_START) - 1
        if at < 0 or _START(tools[at]) < _START(self._nodes[last]):
            return None
        return tools[at]

    def _subtract(self, number: int, last: int) -> None:
        """The call states its own tokens and those of the calls before it."""
        now, before = self._stated[number], self._stated[last]
        tokens = [
            _difference(now.input_tokens, before.input_tokens),
            _difference(now.output_tokens, before.output_tokens),
        ]
        if any(count is not None and count < 0 for count in tokens):
            self.flags.add("llm_detail_unreliable")
            tokens = [None, None]
        self._set(number, *tokens)

    def _join(self, number: int, around: int, tool: Node | None) -> None:
        """The call inside another one states the same tokens, which are those of both. A client
        only makes it after it has carried out a tool.
        """
        if tool is None:
            self.flags.add("lost_tool_calls")
        inner, outer = self._stated[number], self._stated[around]
        self.own[number] = replace(inner, input_tokens=None, output_tokens=None)
        self.own[around] = replace(outer, input_tokens=None, output_tokens=None)
        self.to_sum[number] = None
        if (inner.input_tokens, inner.output_tokens) != (outer.input_tokens, outer.output_tokens):
            self.flags.add("llm_detail_unreliable")
            self.to_sum[around] = self.own[around]

    def _set(self, number: int, input_tokens: int | None, output_tokens: int | None) -> None:
        call = replace(self._stated[number], input_tokens=input_tokens, output_tokens=output_tokens)
        self.own[number] = self.to_sum[number] = call


_START: Callable[[Node], int] = attrgetter("span.start_ns")


def _hook(node: Node) -> Callable[[Span], bool] | None:
    """The hook of the dialect that made the span of a model call."""
    return node.dialect.adds_up_usage if node.dialect is not None else None


def _is_unknown(call: ModelCall) -> bool:
    return call.input_tokens is None and call.output_tokens is None


def _difference(now: int | None, before: int | None) -> int | None:
    if now is None or before is None:
        return None
    return now - before


def _asked_for_tools(node: Node) -> bool:
    return "tool" in str(first(node.spans, node.fields.finish_reasons)).lower()
