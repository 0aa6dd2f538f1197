"""Formats checks of judges, as JSON or text, and compares them with the requirements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pathgauge.collector.offline.coverage import counts
from pathgauge.collector.offline.judge_check.check import Check, Flips
from pathgauge.collector.offline.judge_check.cost import CheckCost
from pathgauge.collector.offline.judge_check.examples import label_text
from pathgauge.scorers.judges.agreement import measures
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Json

MAX_SHOWN = 10
"""Examples listed of each kind in the text."""
MAX_SHOWN_CHARS = 300
"""Maximum length of an answer in the text."""
MAX_ANSWER_CHARS = 10_000
"""Maximum length of an answer in JSON."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """How good a judge has to be; `None` requires nothing."""

    min_kappa: float | None = None
    max_flips: float | None = None
    """The share of comparisons, for order and for injections separately."""
    injections: bool = True
    """Whether injections were to be tried."""

    def violations(self, check: Check) -> Iterator[str]:
        """One line for each requirement that is not met. What could not be measured is not met."""
        name, kappa = check.criterion.name, check.quality.kappa
        if not check.quality.answered:
            reasons = counts(check.unanswered)
            yield f"{name}: no example was judged, expected at least one: {reasons}"
        if self.min_kappa is not None and (kappa is None or kappa < self.min_kappa):
            yield f"{name}: kappa {_number(kappa)}, expected {self.min_kappa:g} or more"
        if self.max_flips is None:
            return
        causes = {"order": check.order}
        if self.injections:
            causes["injections"] = check.injected
        for cause, flips in causes.items():
            if flips.share is None or flips.share > self.max_flips:
                found = f"flips by {cause} {_number(flips.share)}"
                yield f"{name}: {found}, expected {self.max_flips:g} or less"


def check_object(check: Check) -> dict[str, Json]:
    """A check as JSON."""
    return {
        "criterion": check.criterion.name,
        "judge": check.criterion.judge,
        "threshold": check.criterion.threshold,
        **measures(check.quality),
        "unanswered": dict(check.unanswered),
        "not_judged": [_with_short_answer(one._asdict()) for one in check.not_judged],
        "wrong": [_with_short_answer(wrong._asdict()) for wrong in check.wrong],
        "order": _flips_object(check.order),
        "injections": _flips_object(check.injected),
    }


def _with_short_answer(written: dict[str, Json]) -> dict[str, Json]:
    answer = written["answer"]
    return {**written, "answer": None if answer is None else answer[:MAX_ANSWER_CHARS]}


def _flips_object(flips: Flips) -> dict[str, Json]:
    return {
        "tried": flips.tried,
        "unanswered": flips.unanswered,
        "flipped": list(flips.flipped),
        "share": flips.share,
        "median_shift": flips.median_shift,
    }


def check_lines(check: Check) -> Iterator[str]:
    """A check as lines of text."""
    yield f"{check.criterion.name}, judged by {check.criterion.judge}"
    found = measures(check.quality)
    labelled, answered = found.pop("labelled"), found.pop("answered")
    reasons = "".join(f", {count} {reason}" for reason, count in sorted(check.unanswered.items()))
    yield f"  examples: {labelled}, of which {answered} judged{reasons}"
    yield from (f"  {name.replace('_', ' ')}: {_number(value)}" for name, value in found.items())
    yield f"  flips by order: {_flips_text(check.order)}"
    yield from _first(check.order.flipped)
    yield f"  flips by injections: {_flips_text(check.injected)}"
    yield from _first(check.injected.flipped)
    if check.wrong:
        yield f"  scores that contradict the label: {len(check.wrong)}"
        yield from _first(
            [
                f"{wrong.example}: labelled {label_text(wrong.label)}, score {wrong.score:g}"
                f"{_answer(wrong.answer)}"
                for wrong in check.wrong
            ]
        )
    if check.not_judged:
        yield f"  without a verdict: {len(check.not_judged)}"
        yield from _first(
            [
                f"{one.example}: {one.reason}: {one.explanation}{_answer(one.answer)}"
                for one in check.not_judged
            ]
        )


def cost_line(cost: CheckCost) -> str:
    """The cost as one line of text."""
    other_codes = [f"{n} {code}" for code, n in sorted(cost.codes.items()) if code != "200"]
    requests = f"{counted(cost.codes.total(), 'request')}"
    if other_codes:
        requests = f"{requests} ({', '.join(other_codes)})"
    usd = "cost unknown" if cost.usd is None else f"{cost.usd:.4f} USD"
    return f"{requests}, {cost.by_kind['input']} tokens in, {cost.by_kind['output']} out, {usd}"


def _flips_text(flips: Flips) -> str:
    text = "nothing to compare"
    if flips.tried:
        shift = _number(flips.median_shift)
        text = f"{len(flips.flipped)} of {flips.tried}, median shift {shift}"
    if flips.unanswered:
        text = f"{text}, {flips.unanswered} without a verdict"
    return text


def _answer(text: str | None) -> str:
    """What the model wrote, as the end of a line."""
    if text is None:
        return ""
    line = " ".join(text.split())
    if len(line) > MAX_SHOWN_CHARS:
        line = f"{line[: MAX_SHOWN_CHARS - 1]}…"
    return f"; the model's answer: {line}"


def _first(names: Sequence[str]) -> Iterator[str]:
    yield from (f"    {name}" for name in names[:MAX_SHOWN])
    if len(names) > MAX_SHOWN:
        yield f"    and {counted(len(names) - MAX_SHOWN, 'other')}"


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.3g}"
