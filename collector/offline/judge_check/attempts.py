"""Changes examples in ways that should not change a verdict: another order, or an injection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from pathgauge.collector.offline.judge_check.examples import Example
from pathgauge.collector.offline.judge_check.situations import Situation
from pathgauge.scorers.judge_protocol import AnswerT, Ask, Judge, JudgeError, Question
from pathgauge.scorers.judges.injections import Injection, injections, sample
from pathgauge.scorers.types import Invocation, Json

_ORDERED_OPTIONS = ("choices", "rating_rubric", "criteria", "rubrics")
"""Options of judges that are shown to the model in their order, which should not matter."""


class RecordedAnswers:
    """An `Ask` that remembers what the model wrote."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.last: str | None = None
        """The last answer as JSON, or as its text if it could not be used."""

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        """The answer to the question. Raises `JudgeError`."""
        try:
            answer = await self._ask(question)
        except JudgeError as error:
            if error.answer:
                self.last = error.answer
            raise
        self.last = answer.model_dump_json()
        return answer


class ReversedData:
    """An `Ask` that shows the members of the data in the opposite order."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        """The answer to the question with reversed data. Raises `JudgeError`."""
        data = dict(reversed(list(question.data.items())))
        return await self._ask(replace(question, data=data))


def with_reversed_options(judge: Judge) -> Judge:
    """The same judge with its choices and rubrics in the opposite order."""
    options: Any = judge
    if not is_dataclass(options) or isinstance(options, type):
        return judge
    changed = {
        field.name: _reversed(getattr(options, field.name))
        for field in fields(options)
        if field.name in _ORDERED_OPTIONS
    }
    if not changed:
        return judge
    return cast(Judge, replace(options, **changed))


def _reversed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(reversed(list(value.items())))
    return value[::-1]


def injection_windows(count: int) -> Iterator[tuple[Injection, ...]]:
    """`count` injections for each example in turn. Each window starts where the last one ended, so
    that many examples together cover all injections.
    """
    every = sample(len(injections()))
    begin, count = 0, min(count, len(every))
    while True:
        yield (*every, *every)[begin : begin + count]
        begin = (begin + count) % len(every)


async def with_injection(example: Example, judge: Judge, text: str) -> Invocation:
    """The invocation with `text` at the end of its response. When the judge does not look at the
    response, `text` is also added to the result of the last tool call.
    """
    actual = example.actual
    changed = replace(actual, final_response=f"{actual.final_response or ''}\n{text}")
    if not actual.tool_calls:
        return changed
    if await _prompt_data(example, judge, changed) != await _prompt_data(example, judge, actual):
        return changed
    *others, last = actual.tool_calls
    last = replace(last, result=f"{last.result or ''}\n{text}")
    return replace(changed, tool_calls=(*others, last))


async def _prompt_data(example: Example, judge: Judge, actual: Invocation) -> Sequence[Json]:
    """The data that the judge would show to a model. No model is asked."""
    collected: list[Json] = []

    async def collect(question: Question[AnswerT]) -> AnswerT:
        collected.append(question.data)
        raise JudgeError("judge_unconfigured", "no model is asked")

    await Situation.of(example, actual).judged(judge, collect)
    return collected
