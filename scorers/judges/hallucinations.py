"""Groundedness: the share of sentences of the response without unsupported claims.

The evidence is what the user said and what the tools returned; for a text between tool calls, only
what they had returned by then. The sentences are split and numbered here, so the model cannot skip
any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pathgauge.scorers.authoring.extras import Extras
from pathgauge.scorers.authoring.model_texts import calls_with_intermediate_texts
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.judges import answers
from pathgauge.scorers.judges.checklist import Checklist
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.judges.prompt_data import encoded, shortened
from pathgauge.scorers.judges.prompt_members import legend, read_members
from pathgauge.scorers.judges.sentences import sentences
from pathgauge.scorers.judges.verdicts import Verdict
from pathgauge.scorers.matching.calls import outcome_known
from pathgauge.scorers.types import (
    Invocation,
    Json,
    ModelCall,
    ReferenceTurn,
    Score,
    ToolCall,
)

MAX_SENTENCES = 200

_CONTEXT = ("user_input", "trajectory")
_WITHOUT_RESULT = frozenset({"handoff", "final_answer"})
"""Kinds of tool calls that return nothing."""
_VALUES: Mapping[str, float | None] = {
    "supported": 1.0,
    "unsupported": 0.0,
    "contradictory": 0.0,
    "disputed": 0.0,
    "not_applicable": 1.0,
}

_INSTRUCTIONS = f"""\
You check the final answer of an AI agent for claims that nothing bears out, sentence by \
sentence. The context is `user_input` and the
results in `trajectory`; you know nothing else, but for what is trivial.

Give one verdict on the number of each sentence:
- `supported`: the context entails all of it.
- `unsupported`: the context does not entail it.
- `contradictory`: the context says otherwise.
- `disputed`: the context says both.
- `not_applicable`: it states no fact that needs a source, such as a greeting, a question, an \
opinion, a plan, a disclaimer, or arithmetic.

Be strict: unless the context has straightforward evidence, a claim is `unsupported`. Results of \
a call that made no sense are no evidence.

{legend(_CONTEXT)}
"""
_FINAL = "- `sentences`: the final answer, in numbered sentences"
_ALL = (
    "- `sentences`: what the agent said while it worked, and then the final answer, in numbered"
    " sentences. Of `trajectory`, only the calls whose `number` is in `calls_before` of a sentence"
    " are evidence for it: the agent did not know the others yet. Where it is null or not there,"
    " all calls are."
)


@dataclass(frozen=True)
class Hallucinations(ModelJudge, Share):
    """The share of sentences of the response that are supported by the user's input and the tool
    results, or need no support.
    """

    name: ClassVar[str] = "hallucinations_v1"

    max_tokens: int = field(default=8192, kw_only=True)
    """Maximum length of an answer, which has a reasoning for each sentence."""
    max_chars: int = field(default=60_000, kw_only=True)
    """Maximum length of each member of the data. Longer ones are not judged, since the omitted part
    may contain the evidence.
    """
    evaluate_intermediate_nl_responses: bool = False
    """If true, what the models said between tool calls is checked, too."""

    @property
    def extras(self) -> Extras:
        """The texts of the model calls, with `evaluate_intermediate_nl_responses`."""
        return Extras(model_texts=self.evaluate_intermediate_nl_responses)

    def instruction_texts(self) -> tuple[str, ...]:
        """The meaning of each label."""
        return (_INSTRUCTIONS + (_ALL if self.evaluate_intermediate_nl_responses else _FINAL),)

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The context and the numbered sentences, never shortened."""
        context = read_members((*_CONTEXT, "response"), actual, expected)
        if isinstance(context, Score):
            return context
        calls = [call for call in actual.tool_calls if call.kind not in _WITHOUT_RESULT]
        if not all(outcome_known(call) for call in calls):
            return Score.not_evaluated("results_not_recorded")
        found = [{"sentence": sentence} for sentence in sentences(context.pop("response"))]
        if self.evaluate_intermediate_nl_responses:
            earlier = _intermediate_sentences(actual)
            if isinstance(earlier, Score):
                return earlier
            found = [*earlier, *found]
            context["trajectory"] = _numbered(context["trajectory"])
        if not found:
            return Score.not_evaluated("not_applicable", "the response has no sentences")
        if len(found) > MAX_SENTENCES:
            return Score.not_evaluated(
                "too_long",
                f"the response has {len(found)} sentences; at most {MAX_SENTENCES} are judged",
            )
        context["sentences"] = _numbered(found)
        return self._too_long(context) or context

    def _too_long(self, context: Mapping[str, Json]) -> Score | None:
        for name, member in context.items():
            if len(encoded(shortened(member, sys.maxsize))) > self.max_chars:
                return Score.not_evaluated(
                    "too_long", f"{name} has more than {self.max_chars} characters"
                )
        return None

    def verdict(self, data: Mapping[str, Json]) -> Verdict[Any]:
        """One label for each sentence."""
        texts = tuple(item["sentence"] for item in data.get("sentences", [{"sentence": ""}]))
        return Checklist(answers.items(len(texts), *_VALUES), texts, _VALUES, "sentences")


def _numbered(items: Iterable[Mapping[str, Json]]) -> list[dict[str, Json]]:
    return [{"number": number, **item} for number, item in enumerate(items, 1)]


def _intermediate_sentences(actual: Invocation) -> list[dict[str, Json]] | Score:
    """The sentences between the tool calls, each with the numbers of the calls before it."""
    calls = calls_with_intermediate_texts(actual)
    if isinstance(calls, Score):
        return calls
    return [
        {"sentence": sentence, "calls_before": known}
        for call in calls
        for known in [_calls_before(call, actual)]
        for sentence in sentences(call.text or "")
    ]


def _calls_before(said: ModelCall, actual: Invocation) -> list[int] | None:
    """The numbers of the tool calls that had ended when a model began to speak; `None` if times
    are not known.
    """
    ends = [_end(call) for call in actual.tool_calls]
    if said.start_ns is None or None in ends:
        return None
    return [
        number for number, end in enumerate(ends, 1) if end is not None and end <= said.start_ns
    ]


def _end(call: ToolCall) -> int | None:
    """When a call returned. One that returns nothing may have a start only."""
    if call.end_ns is None and call.kind in _WITHOUT_RESULT:
        return call.start_ns
    return call.end_ns
