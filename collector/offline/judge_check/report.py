"""Words for checks of judges: a `Check` comes in, JSON for machines, lines for people, and what is
not good enough go out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pathgauge.collector.offline.judge_check.check import Check, Flips
from pathgauge.collector.offline.judge_check.cost import Spent
from pathgauge.scorers.judges.agreement import measures
from pathgauge.scorers.types import Json

MAX_SHOWN = 10
"""Examples that a person is shown of each kind."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What a judge has to be; `None` demands nothing."""

    min_kappa: float | None = None
    max_flips: float | None = None
    """The share of comparisons, by order as well as by injections."""
    injections: bool = True
    """Whether there were to be any."""

    def missed(self, check: Check) -> Iterator[str]:
        """What is not good enough, a line each. What could not be measured is not good enough."""
        name, kappa = check.criterion.name, check.quality.kappa
        if self.min_kappa is not None and (kappa is None or kappa < self.min_kappa):
            yield f"{name}: kappa {_number(kappa)}, expected {self.min_kappa:g} or more"
        for what, flips in (
            ("order", check.order),
            *([("injections", check.injected)] if self.injections else []),
        ):
            if self.max_flips is not None and (flips.share is None or flips.share > self.max_flips):
                yield (
                    f"{name}: flips by {what} {_number(flips.share)}, expected {self.max_flips:g}"
                    " or less"
                )


def check_object(check: Check) -> dict[str, Json]:
    """A check as JSON."""
    return {
        "criterion": check.criterion.name,
        "judge": check.criterion.judge,
        "threshold": check.criterion.threshold,
        **measures(check.quality),
        "unanswered": dict(check.unanswered),
        "wrong": [
            {"example": name, "label": label, "score": score} for name, label, score in check.wrong
        ],
        "order": _flips_object(check.order),
        "injections": _flips_object(check.injected),
    }


def _flips_object(flips: Flips) -> dict[str, Json]:
    return {
        "tried": flips.tried,
        "unanswered": flips.unanswered,
        "flipped": list(flips.flipped),
        "share": flips.share,
        "median_shift": flips.median_shift,
    }


def check_lines(check: Check) -> Iterator[str]:
    """A check for people."""
    yield f"{check.criterion.name}, judged by {check.criterion.judge}"
    found = measures(check.quality)
    labelled, answered = found.pop("labelled"), found.pop("answered")
    reasons = "".join(f", {count} {reason}" for reason, count in sorted(check.unanswered.items()))
    yield f"  examples: {labelled}, of which {answered} judged{reasons}"
    yield from (f"  {name.replace('_', ' ')}: {_number(value)}" for name, value in found.items())
    yield f"  flips by order: {_flips_line(check.order)}"
    yield from _some(check.order.flipped)
    yield f"  flips by injections: {_flips_line(check.injected)}"
    yield from _some(check.injected.flipped)
    if check.wrong:
        yield f"  judged otherwise than labelled: {len(check.wrong)}"
        yield from _some(
            [
                f"{name}: labelled {_label(label)}, score {score:g}"
                for name, label, score in check.wrong
            ]
        )


def spent_line(spent: Spent) -> str:
    """What it cost, for people."""
    others = ", ".join(
        f"{count} {code}" for code, count in sorted(spent.codes.items()) if code != "200"
    )
    usd = "cost not known" if spent.usd is None else f"{spent.usd:.4f} USD"
    tokens = f"{spent.by_kind['input']} tokens in, {spent.by_kind['output']} out"
    return f"{spent.codes.total()} requests{others and f' ({others})'}, {tokens}, {usd}"


def _flips_line(flips: Flips) -> str:
    unanswered = f", {flips.unanswered} without a verdict" if flips.unanswered else ""
    if not flips.tried:
        return f"nothing to compare{unanswered}"
    return (
        f"{len(flips.flipped)} of {flips.tried}, median shift"
        f" {_number(flips.median_shift)}{unanswered}"
    )


def _some(names: tuple[str, ...] | list[str]) -> Iterator[str]:
    yield from (f"    {name}" for name in names[:MAX_SHOWN])
    if len(names) > MAX_SHOWN:
        yield f"    and {len(names) - MAX_SHOWN} others"


def _label(label: bool | float) -> str:
    return str(label).lower() if isinstance(label, bool) else f"{label:g}"


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.3g}"
