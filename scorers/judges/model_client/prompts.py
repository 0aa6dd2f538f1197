"""A question as it is sent: a `Question` comes in, the two messages of a conversation and the form
of the answer go out.

What is judged is in the message of the user and nowhere else, also when a model is asked again
because of what it answered.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pathgauge.scorers.judge_protocol import Question
from pathgauge.scorers.judges.model_client.settings import StructuredOutput
from pathgauge.scorers.judges.prompt_data import RULES, section, shortened
from pathgauge.scorers.types import Json

Messages = list[dict[str, str]]
"""Roles and contents."""

_BYTES_PER_TOKEN = 3
"""Fewer than any tokeniser takes for common text, so that estimates are on the safe side."""
_PER_MESSAGE_TOKENS = 8
_REJECTED = "rejected_answer"
_MAX_OF_REJECTED = 4000
_NO_KEYWORDS = ("default", "title", "minLength", "maxLength")
"""Of JSON schemas, which strict output does not know, or which only cost tokens."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """All of a question that a server is sent."""

    system: str
    data: Mapping[str, Json]
    schema: Mapping[str, Json]
    max_chars: int
    max_tokens: int
    temperature: float | None
    structured_output: StructuredOutput
    sample: int
    rejected: Mapping[str, str] = field(default_factory=dict)
    """An answer that was given before and cannot be used; it is data, too."""

    @property
    def response_format(self) -> dict[str, Json] | None:
        """The parameter of that name."""
        match self.structured_output:
            case "json_schema":
                return {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "strict": True, "schema": dict(self.schema)},
                }
            case "json_object":
                return {"type": "json_object"}
            case "none":
                return None

    def messages(self) -> Messages:
        """System and user; the markers of the data are new each time."""
        nonce = str(secrets.randbits(64))
        shown = section(self.data, self.max_chars, nonce)
        if self.rejected:
            shown = section(
                {**self.data, **self.rejected}, max(self.max_chars, _MAX_OF_REJECTED), nonce
            )
        return [{"role": "system", "content": self.system}, {"role": "user", "content": shown}]

    def input_tokens(self, messages: Messages) -> int:
        """An estimate."""
        size = sum(len(message["content"].encode(errors="replace")) for message in messages)
        if self.structured_output == "json_schema":
            size += len(json.dumps(self.schema))
        return math.ceil(size / _BYTES_PER_TOKEN) + _PER_MESSAGE_TOKENS * len(messages)

    def asked_again(self, answer: str, mistake: str) -> Prompt:
        """The question once more, with the answer that cannot be used. `mistake` says why, and
        quotes nothing of it.
        """
        text = (
            f"You have answered this before, and your answer could not be read: {mistake}.\n"
            f"It is in the data as {_REJECTED}. Judge again, and answer in the right form."
        )
        return replace(
            self,
            system=f"{self.system}\n\n{text}",
            rejected={_REJECTED: shortened(answer, _MAX_OF_REJECTED)},
        )

    def parts(self) -> list[Json]:
        """What makes this question another one than others. What is shown first may sway a model,
        so its order counts.
        """
        data = [[name, shortened(value, self.max_chars)] for name, value in self.data.items()]
        return [
            self.system,
            data,
            self.schema,
            self.structured_output,
            self.max_tokens,
            self.temperature,
            self.sample,
        ]


def prompt(question: Question[Any], structured_output: StructuredOutput) -> Prompt:
    """A question as a server with this kind of output is asked."""
    schema = strict(question.answer.model_json_schema())
    form = "Answer with one JSON object and nothing else."
    if structured_output != "json_schema":
        form = (
            "Answer with one JSON object and nothing else. It must fit this JSON"
            f" schema:\n{json.dumps(schema)}"
        )
    return Prompt(
        system="\n\n".join((question.instructions, RULES, form)),
        data=question.data,
        schema=schema,
        max_chars=question.max_chars,
        max_tokens=question.max_tokens,
        temperature=question.temperature,
        structured_output=structured_output,
        sample=question.sample,
    )


def strict(schema: Json) -> Json:
    """A JSON schema as strict output wants it: of every object all members, and no others."""
    match schema:
        case list():
            return [strict(item) for item in schema]
        case dict():
            kept = {
                key: _inner(key, value) for key, value in schema.items() if key not in _NO_KEYWORDS
            }
            if "properties" in kept:
                kept |= {"required": [*kept["properties"]], "additionalProperties": False}
            return kept
        case _:
            return schema


def _inner(key: str, value: Json) -> Json:
    """What stands under a keyword; names of members are no keywords."""
    if key in ("properties", "$defs") and isinstance(value, dict):
        return {name: strict(member) for name, member in value.items()}
    return value if key in ("enum", "const", "required") else strict(value)
