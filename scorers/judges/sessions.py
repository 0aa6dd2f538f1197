"""Judges of whole sessions, under the names of Google ADK and of Vertex AI.

ADK has no prompts of its own for three of them: the Gen AI evaluation service derives rubrics from
the conversation, and the value is the share of those that are met. These judges do the same with a
model of your choice, in one answer. As in ADK, a conversation is judged once, as a whole, and no
reference is used.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.judge_protocol import Ask
from pathgauge.scorers.judges.findings import ShareOfFindings
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.judges.prompt_members import call_json
from pathgauge.scorers.judges.rubrics import RubricBased
from pathgauge.scorers.judges.verdicts import Verdict
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.sessions.whole_session import reference_of
from pathgauge.scorers.types import Invocation, Json, Reference, ReferenceTurn, Score

_MAX_CHARS = 60_000

_DATA = """\
The data has one member:
- `turns`: the conversation, turn by turn. Each turn has what the `user` said, the tool `calls` \
that the agent made then, with what came back,
  and what the `agent` answered. What is null or not there was not recorded: it is not known, \
which is not a fault of the agent."""

_FINDINGS = """\
Write down the statements first, then judge each one by the whole conversation: give your \
reasoning, then whether it holds. One statement is
about one thing, and no two say the same. Write at least one and at most {most}."""

_TASK_SUCCESS = """\
You judge whether an AI agent achieved what its user wanted in a conversation.

Each of your statements is one goal of the user, put so that it holds if the goal was achieved at \
the end of the conversation.
- Goals are what the user asked for in any turn, with the details that mattered to them. A goal \
that the user changed or withdrew counts as last stated.
- Only the outcome counts: not how long it took, nor which way the agent went.
- What the agent claims to have done is no evidence where a tool call would be needed and is not \
there, failed, or returned something else.
- A goal that the agent could not reach for good reasons, and said so, was not achieved."""

_TRAJECTORY = """\
You judge the path that an AI agent took through a conversation, not whether it reached the goal.

Each of your statements is one thing that a good path through this conversation has: a question \
asked when something was missing, a step that had to
come before another, an error that was dealt with, something said earlier that was remembered, no \
detour and no repetition where none was needed.
It holds if the path has it."""

_TOOL_USE = """\
You judge how an AI agent used its tools over a whole conversation.

Each of your statements is one thing that the right use of tools has in this conversation: a call \
that was needed was made, its arguments follow from
what the user and earlier results said, its result was used, an error was not ignored, and no call \
was made without need. It holds if it is so."""

_RUBRICS = """\
You judge an AI agent over a whole conversation by rubrics, and by nothing else.

Each rubric is about all turns together: what went wrong in one turn and was put right in a later \
one counts as put right. What was called is what
`calls` has, with exactly these names and arguments; what the agent says of it does not count."""


class JudgeOfSessions(ModelJudge):
    """The base class of judges of whole sessions."""

    @abstractmethod
    def session_data(
        self, turns: Sequence[SessionTurn], reference: Reference | None
    ) -> Mapping[str, Json] | Score:
        """The data for the model, or a score without a value if there is nothing to judge."""

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The data of a session with a single turn."""
        return self.session_data((SessionTurn(actual),), reference_of(actual, expected))

    def score_session(self, turns: Sequence[SessionTurn], reference: Reference | None) -> Score:
        """Never a value: only `judge_session` has a model to ask."""
        return Score.not_evaluated("judge_unconfigured", "no model is configured to judge")

    async def judge_session(
        self, turns: Sequence[SessionTurn], reference: Reference | None, ask: Ask
    ) -> Score:
        """Ask the model, one sample after the other, and score its answers."""
        data = self.session_data(turns, reference)
        return data if isinstance(data, Score) else await self.asked(data, ask)


@dataclass(frozen=True)
class _ByFindings(JudgeOfSessions, Share):
    max_tokens: int = field(default=4096, kw_only=True)
    """Maximum length of an answer, which has a reasoning for each statement."""
    max_chars: int = field(default=_MAX_CHARS, kw_only=True)
    """Maximum length of the conversation; a longer one loses the middle of its texts."""

    task: ClassVar[str]
    plural: ClassVar[str]
    needs_tools: ClassVar[bool] = False

    def instruction_texts(self) -> tuple[str, ...]:
        """What to look for, and how to answer."""
        return ("\n\n".join([self.task, _FINDINGS.format(most=20), _DATA]),)

    def session_data(
        self, turns: Sequence[SessionTurn], reference: Reference | None
    ) -> Mapping[str, Json] | Score:
        """All turns. Without any text there is nothing to judge."""
        return conversation(turns, needs_tools=self.needs_tools)

    def verdict(self, data: Mapping[str, Json]) -> Verdict[Any]:
        """The share of the statements that hold."""
        return ShareOfFindings(self.plural)


@dataclass(frozen=True)
class MultiTurnTaskSuccess(_ByFindings):
    """The share of the user's goals that were achieved in the whole conversation."""

    name: ClassVar[str] = "multi_turn_task_success_v1"
    task: ClassVar[str] = _TASK_SUCCESS
    plural: ClassVar[str] = "goals"


@dataclass(frozen=True)
class MultiTurnTrajectoryQuality(_ByFindings):
    """The share of what a good path through the conversation has, and the agent's path too."""

    name: ClassVar[str] = "multi_turn_trajectory_quality_v1"
    task: ClassVar[str] = _TRAJECTORY
    plural: ClassVar[str] = "qualities"
    needs_tools: ClassVar[bool] = True


@dataclass(frozen=True)
class MultiTurnToolUseQuality(_ByFindings):
    """The share of what the right use of tools has in the conversation, and the agent's use too.
    Without tool calls there is no value.
    """

    name: ClassVar[str] = "multi_turn_tool_use_quality_v1"
    task: ClassVar[str] = _TOOL_USE
    plural: ClassVar[str] = "qualities"
    needs_tools: ClassVar[bool] = True

    def session_data(
        self, turns: Sequence[SessionTurn], reference: Reference | None
    ) -> Mapping[str, Json] | Score:
        """All turns, if any has a tool call."""
        data = super().session_data(turns, reference)
        if isinstance(data, Score) or any(turn.invocation.tool_calls for turn in turns):
            return data
        return Score.not_evaluated("not_applicable", "no tool was called")


@dataclass(frozen=True)
class RubricBasedMultiTurnTrajectoryQuality(JudgeOfSessions, RubricBased):
    """The share of rubrics that the whole conversation fulfils, each by majority of the samples."""

    name: ClassVar[str] = "rubric_based_multi_turn_trajectory_quality_v1"
    introduction: ClassVar[str] = _RUBRICS
    members: ClassVar[tuple[str, ...]] = ()
    of: ClassVar[Literal["response", "tool_use"]] = "response"

    max_chars: int = field(default=_MAX_CHARS, kw_only=True)
    """Maximum length of the conversation; a longer one loses the middle of its texts."""

    def data_legend(self) -> str:
        """The description of the data in the instructions."""
        return _DATA

    def session_data(
        self, turns: Sequence[SessionTurn], reference: Reference | None
    ) -> Mapping[str, Json] | Score:
        """All turns. The rubrics of a reference are about single turns, so they do not count."""
        if not self.statements:
            return Score.not_evaluated("no_reference", "the criterion has no rubrics")
        return conversation(turns, needs_tools=False)


def conversation(turns: Sequence[SessionTurn], *, needs_tools: bool) -> Mapping[str, Json] | Score:
    """The turns as data for a model; a score without a value if nothing of them was recorded."""
    invocations = [turn.invocation for turn in turns]
    if all(one.user_input is None and one.final_response is None for one in invocations):
        return Score.not_evaluated("texts_not_recorded", "no text of the session was recorded")
    if needs_tools:
        unknown = (tools_unknown(one) for one in invocations)
        if missing := next((score for score in unknown if score is not None), None):
            return missing
    return {"turns": [_turn_json(number, one) for number, one in enumerate(invocations, 1)]}


def _turn_json(number: int, one: Invocation) -> dict[str, Json]:
    """One turn. Calls of which some may be missing would look like all that the agent did."""
    calls = None if tools_unknown(one) else [call_json(call) for call in one.tool_calls]
    return {
        "turn": number,
        "user": one.user_input,
        "calls": calls,
        "agent": one.final_response,
    }
