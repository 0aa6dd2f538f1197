"""Judges by rubrics: the share of given statements that an agent fulfils."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.judges import answers
from pathgauge.scorers.judges.checklist import Checklist
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.judges.prompt_members import legend, read_members
from pathgauge.scorers.judges.verdicts import Verdict
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

MAX_RUBRICS = 100

_VALUES: Mapping[str, float | None] = {"yes": 1.0, "no": 0.0, "not_applicable": None}

_RESPONSE = """\
You judge the final answer of an AI agent by rubrics, and by nothing else.

Evidence is what the user said, and what tools returned to calls that made sense. What the agent \
claims is none. Where a rubric is about
facts, a claim that the evidence does not bear out fails it, also when the agent could have \
found the evidence and did not."""

_TOOL_USE = """\
You judge how an AI agent used its tools by rubrics, and by nothing else.

What was called is what `trajectory` has, with exactly these names and arguments; what the agent \
says of it does not count."""

_MORE_RUBRICS = "- `rubrics`: further rubrics, with their numbers"

_VERDICTS = """\
Judge each rubric by itself, and give one verdict on each number:
- `yes`: it is fulfilled.
- `no`: it is not.
- `not_applicable`: its condition does not hold, or what it is about was not recorded.

The rubrics:"""


@dataclass(frozen=True)
class Rubric:
    """One statement that should hold."""

    text: str
    id: str = ""
    """Its identifier in other tools."""
    description: str = ""
    """How to interpret it."""


def rubrics_of(written: Any) -> tuple[Rubric, ...]:
    """Read rubrics given as texts, as `Rubric`s, or as ADK's objects.

    Raises `ValueError` for anything else and for duplicates.
    """
    if not isinstance(written, list | tuple) or len(written) > MAX_RUBRICS:
        raise ValueError(f"a list of up to {MAX_RUBRICS} rubrics")
    rubrics = tuple(map(_rubric, written))
    texts: set[str] = set()
    ids: set[str] = set()
    for rubric in rubrics:
        if rubric.text in texts or rubric.id in ids:
            raise ValueError(f"found {(rubric.id or rubric.text)!r} twice, expected it once")
        texts.add(rubric.text)
        ids |= {rubric.id} - {""}
    return rubrics


def _rubric(written: Any) -> Rubric:
    match written:
        case Rubric():
            rubric = written
        case str():
            rubric = Rubric(written)
        case {"rubric_id": str(name), "rubric_content": content} | {
            "rubricId": str(name),
            "rubricContent": content,
        }:
            rubric = Rubric(_property(content), name, written.get("description") or "")
        case {"text": str(text)} if written.keys() <= {"text", "id", "description"}:
            rubric = Rubric(text, written.get("id") or "", written.get("description") or "")
        case _:
            raise ValueError(
                "a text, or a mapping of rubric_id and rubric_content, for each rubric"
            )
    fields = (rubric.text, rubric.id, rubric.description)
    if not all(isinstance(value, str) for value in fields) or not rubric.text.strip():
        raise ValueError("found a rubric without text")
    return rubric


def _property(content: Any) -> str:
    match content:
        case {"text_property": str(text)} | {"textProperty": str(text)}:
            return text
    raise ValueError("a text_property in each rubric_content")


Rubrics = Annotated[tuple[Rubric | str, ...], BeforeValidator(rubrics_of)]


@dataclass(frozen=True)
class RubricBased(ModelJudge, Share):
    """The base class of judges by rubrics."""

    rubrics: Rubrics = field(default=(), metadata={"written": "list of texts, or of ADK's rubrics"})
    """Statements, in addition to those of the reference. Each is fulfilled, not fulfilled or not
    applicable; the mean ignores the last.
    """
    max_tokens: int = field(default=4096, kw_only=True)
    """Maximum length of an answer, which has a reasoning for each rubric."""

    introduction: ClassVar[str]
    members: ClassVar[tuple[str, ...]]
    of: ClassVar[Literal["response", "tool_use"]]
    """What the rubrics of a reference must be about."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rubrics", rubrics_of(self.rubrics))
        super().__post_init__()

    @property
    def statements(self) -> tuple[Rubric, ...]:
        """The rubrics, all as `Rubric`s."""
        return rubrics_of(self.rubrics)

    def instruction_texts(self) -> tuple[str, ...]:
        """The instructions with the numbered rubrics."""
        rubrics = _numbered(self.statements)
        lines = [self.introduction, "", _VERDICTS, *rubrics, "", self.data_legend()]
        return ("\n".join(lines),)

    def data_legend(self) -> str:
        """The description of the data in the instructions."""
        return legend(self.members)

    def instructions(self, data: Mapping[str, Json]) -> str:
        """The instructions; where the reference has rubrics, they follow those of the criterion."""
        found = super().instructions(data)
        return f"{found}\n{_MORE_RUBRICS}" if "rubrics" in data else found

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The members, and the rubrics of the reference; the schemas of the tools are optional."""
        more = [rubric for rubric in expected.rubrics if rubric.of == self.of] if expected else []
        known = {rubric.text for rubric in self.statements}
        # A case of ADK and one of its invocations may have the same one.
        by_text = {rubric.text: rubric for rubric in more if rubric.text not in known}
        more = list(by_text.values())
        count = len(known) + len(more)
        if not count:
            text = "neither the criterion nor the reference has rubrics"
            return Score.not_evaluated("no_reference", text)
        if count > MAX_RUBRICS:
            return Score.not_evaluated("too_long", f"{count} rubrics; at most {MAX_RUBRICS}")
        members = read_members(self.members, actual, expected, optional=("tools",))
        if isinstance(members, Score) or not more:
            return members
        rubrics = [
            {"number": number, "rubric": " ".join(f"{rubric.text} {rubric.description}".split())}
            for number, rubric in enumerate(more, len(known) + 1)
        ]
        return {**members, "rubrics": rubrics}

    def verdict(self, data: Mapping[str, Json]) -> Verdict[Any]:
        """One verdict on each rubric."""
        own = (rubric.text for rubric in self.statements)
        texts = (*own, *(more["rubric"] for more in data.get("rubrics", ())))
        # Without data, the schema is only needed for the fingerprint.
        return Checklist(answers.items(max(len(texts), 1), *_VALUES), texts, _VALUES, "rubrics")


@dataclass(frozen=True)
class RubricBasedFinalResponseQuality(RubricBased):
    """The share of rubrics that the response fulfils, each by majority of the samples."""

    name: ClassVar[str] = "rubric_based_final_response_quality_v1"
    introduction: ClassVar[str] = _RESPONSE
    members: ClassVar[tuple[str, ...]] = ("user_input", "tools", "trajectory", "response")
    of: ClassVar[Literal["response", "tool_use"]] = "response"


@dataclass(frozen=True)
class RubricBasedToolUseQuality(RubricBased):
    """The share of rubrics that the tool calls fulfil, each by majority of the samples."""

    name: ClassVar[str] = "rubric_based_tool_use_quality_v1"
    introduction: ClassVar[str] = _TOOL_USE
    members: ClassVar[tuple[str, ...]] = ("user_input", "tools", "trajectory")
    of: ClassVar[Literal["response", "tool_use"]] = "tool_use"

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The members. All arguments must be recorded, since rubrics are about them."""
        members = super().prompt_data(actual, expected)
        if isinstance(members, Score):
            return members
        if any(call.arguments is None for call in actual.tool_calls):
            return Score.not_evaluated("args_not_recorded")
        return members


def _numbered(rubrics: Iterable[Rubric]) -> Iterable[str]:
    for number, rubric in enumerate(rubrics, 1):
        yield " ".join(f"{number}. {rubric.text} {rubric.description}".split())
