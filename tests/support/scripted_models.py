"""Models for tests of judges: `Ask`s that parse their answers like those of a real model."""

from __future__ import annotations

import json
from typing import Any

from pathgauge.scorers.judge_protocol import AnswerT, JudgeError, Question
from pathgauge.scorers.judges.answer_parsing import parse
from pathgauge.scorers.judges.answers import Findings, Items
from pathgauge.scorers.types import Json


class ScriptedAnswers:
    """Gives these answers in turn, again and again. A `JudgeError` is raised."""

    def __init__(self, *answers: str | JudgeError) -> None:
        self.answers = answers
        self.questions: list[Question[Any]] = []

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        answer = self.answers[len(self.questions) % len(self.answers)]
        self.questions.append(question)
        if isinstance(answer, JudgeError):
            raise answer
        try:
            return parse(answer, question.answer)
        except ValueError as error:
            raise JudgeError("judge_malformed", str(error)) from None


class FirstFittingAnswer:
    """Gives each question the first answer that its schema allows."""

    def __init__(self) -> None:
        self.questions: list[Question[Any]] = []

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        self.questions.append(question)
        return parse(json.dumps(_fitting(question.answer)), question.answer)


def verdict_answer(verdict: Json, reasoning: str = "because") -> str:
    """An answer with a label (for a text) or a score."""
    key = "verdict" if isinstance(verdict, str) else "score"
    return json.dumps({"reasoning": reasoning, key: verdict})


def checklist_answer(*verdicts: str) -> str:
    """An answer with a verdict for each of several numbered items."""
    items = [
        {"number": number, "reasoning": f"because {number}", "verdict": verdict}
        for number, verdict in enumerate(verdicts, 1)
    ]
    return json.dumps({"verdicts": items})


def findings_answer(*holds: bool) -> str:
    """An answer with statements of the model's own, and its verdict on each."""
    findings = [
        {"statement": f"statement {number}", "reasoning": f"because {number}", "holds": one}
        for number, one in enumerate(holds, 1)
    ]
    return json.dumps({"findings": findings})


def failure(reason: Any, message: str = "it failed") -> JudgeError:
    """An error to raise instead of an answer."""
    return JudgeError(reason, message)


def _fitting(answer: type[Any]) -> Json:
    schema = answer.model_json_schema()
    if issubclass(answer, Findings):
        return {"findings": [_values(schema["$defs"]["Finding"]["properties"])]}
    if not issubclass(answer, Items):
        return _values(schema["properties"])
    item = schema["$defs"]["Item"]["properties"]
    count = item["number"]["maximum"]
    return {"verdicts": [{**_values(item), "number": number} for number in range(1, count + 1)]}


def _values(properties: Json) -> dict[str, Json]:
    return {name: _value(schema) for name, schema in properties.items()}


def _value(schema: Json) -> Json:
    match schema:
        case {"enum": [first, *_]}:
            return first
        case {"minimum": low}:
            return low
    return {"string": "because", "boolean": True}[schema["type"]]
