"""Fits an answer into a few kilobytes, because a model has to read all of it.

An answer is built with tight limits on lists and texts first, then with wider ones as long as it
fits: in the other order, large answers would take seconds. It says what it leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from mcp_types import CallToolResult, TextContent

from pathgauge.collector.api.mcp.answers import Answer
from pathgauge.collector.api.mcp.untrusted import Marks, name
from pathgauge.scorers.types import Json

MAX_BYTES = 8_000
"""Of the text of an answer."""

T = TypeVar("T")


class Limits(NamedTuple):
    """How much of lists and texts is shown."""

    items: int
    chars: int


LIMITS = (
    Limits(1, 40),
    Limits(2, 60),
    Limits(3, 100),
    Limits(5, 150),
    Limits(10, 150),
    Limits(10, 400),
    Limits(20, 400),
    Limits(30, 1_000),
    Limits(50, 2_000),
)


class Shaper:
    """Cuts and marks the parts of one answer."""

    def __init__(self, limits: Limits, marks: Marks) -> None:
        self._limits = limits
        self._marks = marks
        self._lists: dict[str, tuple[int, int]] = {}

    @property
    def left_out(self) -> list[str]:
        """What was left out so far."""
        return [
            f"{what}: {shown} of {of} shown"
            for what, (shown, of) in self._lists.items()
            if shown < of
        ]

    def some(self, what: str, items: Sequence[T]) -> Sequence[T]:
        """The first items of a list that is called `what`."""
        shown, of = self._lists.get(what, (0, 0))
        kept = items[: self._limits.items]
        self._lists[what] = shown + len(kept), of + len(items)
        return kept

    def text(self, text: str | None) -> str | None:
        """A text of telemetry, marked."""
        return None if text is None else self._marks.text(text, self._limits.chars)

    def json(self, value: Json) -> str | None:
        """A value of telemetry as JSON, marked. A text stays as it is."""
        if value is None or isinstance(value, str):
            return self.text(value)
        return self.text(json.dumps(value, ensure_ascii=False))


def optional_name(text: str | None) -> str | None:
    """A name that may not be known."""
    return None if text is None else name(text)


def fitted(build: Callable[[Shaper], Answer]) -> CallToolResult:
    """The answer that `build` makes, with the widest limits with which it fits."""
    marks = Marks()
    found = _built(build, LIMITS[0], marks)
    for limits in LIMITS[1:]:
        wider = _built(build, limits, marks)
        if len(wider.text.encode()) > MAX_BYTES:
            break
        found = wider
    return CallToolResult(
        content=[TextContent(type="text", text=found.text)],
        structured_content=found.answer.model_dump(mode="json", exclude_none=True),
    )


class _Built(NamedTuple):
    answer: Answer
    text: str


def _built(build: Callable[[Shaper], Answer], limits: Limits, marks: Marks) -> _Built:
    shaper = Shaper(limits, marks)
    answer = build(shaper)
    answer = answer.model_copy(update={"left_out": [*answer.left_out, *shaper.left_out]})
    text = answer.model_dump_json(exclude={"notice"}, exclude_none=True)
    return _Built(answer, marks.answer(text))
