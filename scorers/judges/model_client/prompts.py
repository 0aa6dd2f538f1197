"""Turns a `Question` into the messages of a chat completion and a schema for the answer.

Judged content is only ever in the user message, even when a rejected answer is quoted back.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from pathgauge.scorers.judge_protocol import Question
from pathgauge.scorers.judges.model_client.settings import StructuredOutput, TokenLimit
from pathgauge.scorers.judges.prompt_data import RULES, section, shortened
from pathgauge.scorers.types import Json

Messages = list[dict[str, str]]
"""Each with `role` and `content`."""

_BYTES_PER_TOKEN = 3
"""Fewer than any common tokenizer needs for ordinary text, so estimates are on the safe side."""
_PER_MESSAGE_TOKENS = 8
_REJECTED = "rejected_answer"
_MAX_REJECTED_CHARS = 4000
_DROPPED_KEYWORDS = ("default", "title", "minLength", "maxLength")
"""JSON schema keywords that strict output does not support, or that only cost tokens."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything of a question that is sent to a server."""

    instructions: str
    data: Mapping[str, Json]
    schema: Mapping[str, Json]
    max_chars: int
    max_tokens: int
    temperature: float | None
    structured_output: StructuredOutput
    sample: int
    token_limit: TokenLimit = "max_completion_tokens"
    """The request parameter that carries `max_tokens`."""
    correction: str = ""
    """Why an earlier answer could not be used."""
    rejected: Mapping[str, str] = field(default_factory=dict)
    """That answer; it is sent as data, too."""

    @property
    def system(self) -> str:
        """The system message."""
        form = "Answer with one JSON object and nothing else."
        if self.structured_output != "json_schema":
            form = f"{form} It must fit this JSON schema:\n{json.dumps(self.schema)}"
        parts = (self.instructions, RULES, form, self.correction)
        return "\n\n".join(part for part in parts if part)

    @property
    def response_format(self) -> dict[str, Json] | None:
        """The request parameter of that name."""
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

    @property
    def parameters(self) -> dict[str, Json]:
        """The request parameters besides model and messages; those without a value are left out."""
        parameters = {
            "temperature": self.temperature,
            "response_format": self.response_format,
            self.token_limit: self.max_tokens,
        }
        return {name: value for name, value in parameters.items() if value is not None}

    def messages(self) -> Messages:
        """The system and the user message. The markers around the data are random each time."""
        nonce = str(secrets.randbits(64))
        content = section(self.data, self.max_chars, nonce)
        if self.rejected:
            content = section(
                {**self.data, **self.rejected}, max(self.max_chars, _MAX_REJECTED_CHARS), nonce
            )
        return [{"role": "system", "content": self.system}, {"role": "user", "content": content}]

    def input_tokens(self, messages: Messages) -> int:
        """An estimate."""
        size = sum(len(message["content"].encode(errors="replace")) for message in messages)
        if self.structured_output == "json_schema":
            size += len(json.dumps(self.schema))
        return math.ceil(size / _BYTES_PER_TOKEN) + _PER_MESSAGE_TOKENS * len(messages)

    def with_rejected_answer(self, answer: str, error: str) -> Prompt:
        """The same question with an unusable answer and its error, which must not quote it."""
        text = (
            f"You have answered this before, and your answer could not be read: {error}.\n"
            f"It is in the data as {_REJECTED}. Judge again, and answer in the right form."
        )
        return replace(
            self,
            correction=text,
            rejected={_REJECTED: shortened(answer, _MAX_REJECTED_CHARS)},
        )

    def sent_data(self) -> list[Json]:
        """The members of the data, as a server gets them."""
        return [[name, shortened(value, self.max_chars)] for name, value in self.data.items()]

    def key_parts(self) -> list[Json]:
        """Everything that identifies the question in the cache.

        The order of the data counts, because models are sensitive to it.
        """
        return [
            self.system,
            self.sent_data(),
            self.schema,
            self.structured_output,
            self.max_tokens,
            self.temperature,
            self.sample,
        ]


def prompt(question: Question[Any], structured_output: StructuredOutput) -> Prompt:
    """The prompt of a question, for a server with this kind of structured output."""
    answer: Any = question.answer
    return Prompt(
        instructions=question.instructions,
        data=question.data,
        schema=_strict_schema(answer),
        max_chars=question.max_chars,
        max_tokens=question.max_tokens,
        temperature=question.temperature,
        structured_output=structured_output,
        sample=question.sample,
    )


@lru_cache(maxsize=1000)
def _strict_schema(answer: type[BaseModel]) -> Mapping[str, Json]:
    """The schema of an answer; generating it takes longer than everything else here."""
    schema: Mapping[str, Json] = strict(answer.model_json_schema())
    return schema


def strict(schema: Json) -> Json:
    """Convert a JSON schema for strict output: all members required, no additional ones."""
    match schema:
        case list():
            return [strict(item) for item in schema]
        case dict():
            kept = {
                key: _strict_value(key, value)
                for key, value in schema.items()
                if key not in _DROPPED_KEYWORDS
            }
            if "properties" in kept:
                kept |= {"required": [*kept["properties"]], "additionalProperties": False}
            return kept
        case _:
            return schema


def _strict_value(key: str, value: Json) -> Json:
    """Convert the value of a keyword. Member names may look like keywords and must stay."""
    if key in ("properties", "$defs") and isinstance(value, dict):
        return {name: strict(member) for name, member in value.items()}
    if key in ("enum", "const", "required"):
        return value
    return strict(value)
