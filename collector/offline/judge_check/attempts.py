"""Attempts to make a judge err: an example and its judge come in, the same in another order, or
with an injection, goes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from pathgauge.collector.offline.judge_check.examples import Example
from pathgauge.scorers.judge_protocol import AnswerT, Ask, Judge, JudgeError, Question
from pathgauge.scorers.judges.injections import Injection, injections, sample
from pathgauge.scorers.types import Invocation, Json

_ORDERED = ("choices", "rating_rubric", "criteria", "rubrics")
"""Options of judges that a model is told in their order, which should mean nothing."""


class Backwards:
    """An `Ask` that shows the members of the data in the opposite order."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        """The answer to the question turned round. Raises `JudgeError`."""
        return await self._ask(replace(question, data=dict(reversed(list(question.data.items())))))


def backwards(judge: Judge) -> Judge:
    """The same judge, whose choices and rubrics stand in the opposite order."""
    options: Any = judge
    if not is_dataclass(options) or isinstance(options, type):
        return judge
    turned = {
        field.name: _turned(getattr(options, field.name))
        for field in fields(options)
        if field.name in _ORDERED
    }
    return cast(Judge, replace(options, **turned)) if turned else judge


def _turned(written: Any) -> Any:
    return dict(reversed(list(written.items()))) if isinstance(written, Mapping) else written[::-1]


def windows(count: int) -> Iterator[tuple[Injection, ...]]:
    """`count` injections for one example after the other, each time the next ones, so that many
    examples meet all of them.
    """
    every = sample(len(injections()))
    begin, count = 0, min(count, len(every))
    while True:
        yield (*every, *every)[begin : begin + count]
        begin = (begin + count) % len(every)


async def with_injection(example: Example, judge: Judge, text: str) -> Invocation:
    """What the agent did with a text at the end of its answer; for a judge who does not see that,
    of what its last tool returned.
    """
    answered = replace(
        example.actual, final_response=f"{example.actual.final_response or ''}\n{text}"
    )
    if not example.actual.tool_calls or await _shown(example, judge, answered) != await _shown(
        example, judge, example.actual
    ):
        return answered
    last = example.actual.tool_calls[-1]
    return replace(
        answered,
        tool_calls=(
            *example.actual.tool_calls[:-1],
            replace(last, result=f"{last.result or ''}\n{text}"),
        ),
    )


async def _shown(example: Example, judge: Judge, actual: Invocation) -> Sequence[Json]:
    """What the judge would show a model, which is not asked."""
    questions: list[Json] = []

    async def note(question: Question[AnswerT]) -> AnswerT:
        questions.append(question.data)
        raise JudgeError("judge_unconfigured", "nobody is asked")

    await judge.judge(actual, example.expected, note)
    return questions
