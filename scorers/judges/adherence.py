"""Judges of whether an agent keeps to its task, and to its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.extras import Extras
from pathgauge.scorers.authoring.model_texts import intermediate_texts
from pathgauge.scorers.judges.label_judge import LabelJudge
from pathgauge.scorers.judges.prompt_members import legend
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

_TASK = """\
You decide whether an AI agent kept to its task.

The task is what the user asked for{task}. The agent is `adherent` when
- its final answer does what the task asks for, no less and nothing else,
- it kept every rule of the task, in what it did as well as in what it said,
- its tool calls serve the task and were needed or plausible for it, and it claims no action that \
`trajectory` does not have.

It is `not_adherent` otherwise: for instance when it did more than it may, skipped a required \
step, drifted to another subject, or stopped with the task open and without saying why.{rules}"""

_OWN_RULES = ", within these rules and instructions of the agent, which its user cannot change"

_PLAN = """\
You decide whether an AI agent did what it planned.

The plan is {plan}; `trajectory` is what it did.
- `followed`: each step of the plan was done, in an order that the plan allows, and what else was \
done does not contradict it. A step may also have been left out or changed for a reason that \
shows: its condition did not hold, a result made it needless, or an error forced another way.
- `deviated`: a step is missing, another thing was done instead, or steps were done in an order \
that the plan rules out, and no such reason shows.
- `no_plan`: no step was planned.

Judge whether it was followed, not whether the plan was good."""

_GIVEN = "given below"
_STATED = "in `plan`: what the agent said while it worked, in which it may have announced its steps"


@dataclass(frozen=True)
class TaskAdherence(LabelJudge):
    """1 if the agent keeps to the task and its rules by majority of the samples, else 0."""

    name: ClassVar[str] = "task_adherence"
    members: ClassVar[tuple[str, ...]] = ("user_input", "tools", "trajectory", "response")
    optional: ClassVar[tuple[str, ...]] = ("tools",)
    labels: ClassVar[Mapping[str, float | None]] = {"adherent": 1.0, "not_adherent": 0.0}

    task: str = ""
    """What the agent is there for, and the rules that it must keep, such as its system prompt."""

    def instruction_texts(self) -> tuple[str, ...]:
        """The meaning of the labels, and the task."""
        task, rules = "", ""
        if self.task.strip():
            task, rules = _OWN_RULES, f"\n\nThe rules:\n{self.task.strip()}"
        return (f"{_TASK.format(task=task, rules=rules)}\n\n{legend(self.members)}",)


@dataclass(frozen=True)
class PlanAdherence(LabelJudge):
    """1 if the agent does what it announced, or what a plan says, by majority of the samples,
    else 0.
    """

    name: ClassVar[str] = "plan_adherence"
    members: ClassVar[tuple[str, ...]] = ("user_input", "trajectory", "response")
    optional: ClassVar[tuple[str, ...]] = ("response",)
    labels: ClassVar[Mapping[str, float | None]] = {
        "followed": 1.0,
        "deviated": 0.0,
        "no_plan": None,
    }

    plan: str = ""
    """The plan that the agent must follow. Without it, the plan is what the models said between the
    tool calls.
    """

    @property
    def extras(self) -> Extras:
        """The texts of the model calls, without a `plan`."""
        return Extras(model_texts=not self.plan.strip())

    def instruction_texts(self) -> tuple[str, ...]:
        """The meaning of the labels, and the plan if it is given."""
        if self.plan.strip():
            question = f"{_PLAN.format(plan=_GIVEN)}\n\nThe plan:\n{self.plan.strip()}"
        else:
            question = _PLAN.format(plan=_STATED)
        return (f"{question}\n\n{legend(self.members)}",)

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The members, and the plan unless it is given."""
        data = super().prompt_data(actual, expected)
        if isinstance(data, Score) or self.plan.strip():
            return data
        texts = intermediate_texts(actual)
        if isinstance(texts, Score):
            return texts
        if not texts:
            return Score.not_evaluated("not_applicable", "the agent said nothing of a plan")
        return {"plan": list(texts), **data}
