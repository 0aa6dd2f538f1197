"""Scores one agent of an invocation instead of the whole.

A view is an `Invocation` with only what one agent did, alone or together with the agents below it.
So every scorer of whole invocations also works for a coordinator or a sub-agent: see `OfAgent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import ClassVar, Literal, get_args

from pathgauge.scorers.authoring.extras import Extras, extras_of
from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.composite.parts import OfParts, Part, judged, scored
from pathgauge.scorers.judge_protocol import Ask
from pathgauge.scorers.matching.measures import mean_of
from pathgauge.scorers.matching.span_tree import below, without
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import (
    AgentRun,
    Invocation,
    Json,
    ReferenceTurn,
    Score,
    Scorer,
    total_tokens,
)

View = Literal["own", "subtree"]
"""`own`: what an agent did itself. `subtree`: what it and all agents below it did."""
VIEWS: tuple[View, ...] = get_args(View)

MAX_RUNS = 200
"""With more runs of one agent in an invocation, the agent is not evaluated."""


def own_view(invocation: Invocation, run: AgentRun | None = None) -> Invocation:
    """What the agent of `run` did itself, without its sub-agents; `None`: the main agent."""
    if run is not None:
        others = {other.span_id for other in invocation.sub_agents} - {run.span_id}
        view = _view(invocation, run, {run.span_id})
        return replace(view, spans=without(view.spans, others))
    if not invocation.sub_agents:
        return invocation
    sub_agents = {other.span_id for other in invocation.sub_agents}
    models = tuple(call for call in invocation.model_calls if call.run not in sub_agents)
    input_tokens, output_tokens = total_tokens(models)
    return replace(
        invocation,
        tool_calls=tuple(call for call in invocation.tool_calls if call.run not in sub_agents),
        model_calls=models,
        sub_agents=(),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        spans=without(invocation.spans, sub_agents),
    )


def subtree_view(invocation: Invocation, run: AgentRun) -> Invocation:
    """What the agent of `run` and all agents below it did."""
    runs = {run.span_id}
    for other in invocation.sub_agents:  # in start order, so a parent comes before its children
        if other.parent_run in runs:
            runs.add(other.span_id)
    return _view(invocation, run, runs)


def _view(invocation: Invocation, run: AgentRun, runs: set[str]) -> Invocation:
    models = tuple(call for call in invocation.model_calls if call.run in runs)
    input_tokens, output_tokens = total_tokens(models)
    return replace(
        invocation,
        span_id=run.span_id,
        agent=run.agent,
        user_input=run.user_input,
        tool_calls=tuple(call for call in invocation.tool_calls if call.run in runs),
        sub_agents=tuple(
            other
            for other in invocation.sub_agents
            if other.span_id in runs and other.span_id != run.span_id
        ),
        model_calls=models,
        final_response=run.final_response,
        error=run.error is not None,
        error_type=run.error_type,
        model=models[-1].model if models else None,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        start_ns=run.start_ns,
        end_ns=run.end_ns,
        spans=below(invocation.spans, {run.span_id}),
    )


@dataclass(frozen=True)
class OfAgent:
    """Applies a scorer to one agent of an invocation; the value is the mean over its runs.

    A sub-agent is compared with `ReferenceTurn.agents[agent]`, the main agent with the reference
    turn itself. If the agent did not run, there is no value, with one exception: if the reference
    has expectations for the agent and `scorer` needs a reference, an empty run is scored.
    """

    # Each instance copies these from its scorer.
    name: ClassVar[str]
    version: ClassVar[str]
    low: ClassVar[float]
    high: ClassVar[float]
    higher_is_better: ClassVar[bool]
    needs_reference: ClassVar[bool]

    asks_model: ClassVar[bool]
    model: ClassVar[str | None]
    template: ClassVar[str]
    extras: ClassVar[Extras]

    scorer: Scorer
    agent: str
    view: View = "own"

    def __post_init__(self) -> None:
        check_choice("view", self.view, VIEWS)
        for attribute in ("name", "version", "low", "high", "higher_is_better", "needs_reference"):
            object.__setattr__(self, attribute, getattr(self.scorer, attribute))
        for attribute, default in {"asks_model": False, "model": None, "template": ""}.items():
            object.__setattr__(self, attribute, getattr(self.scorer, attribute, default))
        object.__setattr__(self, "extras", extras_of([self.scorer]))

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score every run of the agent; `details` lists them as `runs`."""
        return scored(self._parts(actual, expected))

    async def judge(self, actual: Invocation, expected: ReferenceTurn | None, ask: Ask) -> Score:
        """Score every run of the agent, asking a model if `scorer` does."""
        return await judged(self._parts(actual, expected), ask)

    def _parts(self, actual: Invocation, expected: ReferenceTurn | None) -> OfParts:
        if expected is None and self.needs_reference:
            return Score.not_evaluated("no_reference", "no reference")
        if actual.agent == self.agent:
            view = own_view(actual) if self.view == "own" else actual
            return (yield from self._mean([view], expected))
        turn = None if expected is None else expected.agents.get(self.agent)
        runs = [run for run in actual.sub_agents if run.agent == self.agent]
        if not runs:
            return (yield from self._not_run(actual, turn))
        if len(runs) > MAX_RUNS:
            return Score.not_evaluated(
                "too_long",
                f"{counted(len(runs), 'run')} of {self.agent}; at most {MAX_RUNS} are judged",
            )
        view_of = own_view if self.view == "own" else subtree_view
        return (yield from self._mean([view_of(actual, run) for run in runs], turn))

    def _not_run(self, actual: Invocation, turn: ReferenceTurn | None) -> OfParts:
        explanation = f"{self.agent} did not run"
        if turn is None or not self.needs_reference:
            return Score.not_evaluated("not_applicable", explanation)
        if unknown := tools_unknown(actual):
            return unknown
        idle = _view(actual, AgentRun("", self.agent, final_response=""), set())
        return (yield from self._mean([idle], turn, f"{explanation}: "))

    def _mean(
        self, views: Sequence[Invocation], turn: ReferenceTurn | None, prefix: str = ""
    ) -> OfParts:
        """The mean of the views that have a value. `prefix` starts the explanation."""
        scores = yield [Part(self.scorer, view, turn) for view in views]
        details = {
            "agent": self.agent,
            "runs": [_run_details(view, score) for view, score in zip(views, scores, strict=True)],
        }
        known = [(score.value, score.explanation) for score in scores if score.value is not None]
        if not known:
            explanation = f"{prefix}{scores[0].explanation}"
            return replace(scores[0], explanation=explanation, details=details)
        worst_of = min if self.higher_is_better else max
        _, worst = worst_of(known, key=itemgetter(0))
        if len(scores) > 1:
            prefix = f"mean of {len(known)} of {len(scores)} runs of {self.agent}; the worst: "
        return Score(mean_of([value for value, _ in known]), None, f"{prefix}{worst}", details)


def _run_details(view: Invocation, score: Score) -> Json:
    return {
        "run": view.span_id or None,
        "value": score.value,
        "reason": score.reason,
        "explanation": score.explanation,
        "details": dict(score.details),
    }
