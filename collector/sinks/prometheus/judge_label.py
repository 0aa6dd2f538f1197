"""The label `judge`.

Another model, or another wording of its question, gives other scores without a change of the agent.
So series of scores from a model name the judge. Other series lack the label; Prometheus treats an
empty label as an absent one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.label_values import MAX_NAME_BYTES, label_value
from pathgauge.collector.sinks.prometheus.durable_family import Family, T

JUDGE = "judge"
"""Always the last label of a series, so that series without it have one value less."""


def judge_value(judge: str) -> str:
    """`model@template` as a label value. A long model name is cut without losing the template."""
    model, at, template = judge.rpartition("@")
    return label_value(model, MAX_NAME_BYTES) + at + label_value(template, MAX_NAME_BYTES)


def with_judge(values: tuple[str, ...], judge: str) -> tuple[str, ...]:
    """Label values, followed by the judge if there is one."""
    return (*values, judge_value(judge)) if judge else values


def judges_of(criteria: Iterable[Criterion]) -> frozenset[str]:
    """The label values of the judges of these criteria."""
    return frozenset(judge_value(criterion.judge) for criterion in criteria if criterion.judge)


def drop_other_judges(family: Family[T], judges: Collection[str]) -> None:
    """Drop the series with a judge that is not among these label values."""
    with_a_judge = (one.labels for one in family if len(one.labels) == len(family.labels))
    family.drop([labels for labels in with_a_judge if labels[-1] not in judges])
