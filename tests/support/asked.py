"""Models to ask in tests of judges: texts of answers come in, an `Ask` goes out that reads them as
it would read a real model's.
"""

from __future__ import annotations

import json
from typing import Any

from pathgauge.scorers.judge_protocol import AnswerT, JudgeError, Question
from pathgauge.scorers.judges.answers import Items, parse
from pathgauge.scorers.types import Json


class Scripted:
    """Says these texts one after the other, and then from the beginning; a `JudgeError` is no
    answer.
    """

    def __init__(self, *said: str | JudgeError) -> None:
        self.said = said
        self.questions: list[Question[Any]] = []

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        said = self.said[len(self.questions) % len(self.said)]
        self.questions.append(question)
        if isinstance(said, JudgeError):
            raise said
        try:
            return parse(said, question.answer)
        except ValueError as error:
            raise JudgeError("judge_malformed", str(error)) from None


class Obliging:
    """Answers whatever it is asked with the first answer that fits."""

    def __init__(self) -> None:
        self.questions: list[Question[Any]] = []

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        self.questions.append(question)
        return parse(json.dumps(_fitting(question.answer)), question.answer)


def says(verdict: Json, reasoning: str = "because") -> str:
    """An answer with a label, or with a score."""
    return json.dumps(
        {"reasoning": reasoning, "verdict" if isinstance(verdict, str) else "score": verdict}
    )


def lists(*verdicts: str) -> str:
    """An answer with a verdict on each of several numbered things."""
    return json.dumps(
        {
            "verdicts": [
                {"number": n, "reasoning": f"because {n}", "verdict": v}
                for n, v in enumerate(verdicts, 1)
            ]
        }
    )


def fails(reason: Any, message: str = "it failed") -> JudgeError:
    """What is raised instead of an answer."""
    return JudgeError(reason, message)


def _fitting(answer: type[Any]) -> Json:
    schema = answer.model_json_schema()
    if issubclass(answer, Items):
        item = schema["$defs"]["Item"]["properties"]
        return {
            "verdicts": [
                {**_values(item), "number": number}
                for number in range(1, item["number"]["maximum"] + 1)
            ]
        }
    return _values(schema["properties"])


def _values(properties: Json) -> dict[str, Json]:
    return {name: _value(schema) for name, schema in properties.items()}


def _value(schema: Json) -> Json:
    match schema:
        case {"enum": [first, *_]}:
            return first
        case {"minimum": low}:
            return low
    return {"string": "because", "boolean": True}[schema["type"]]
