"""The traffic that `pathgauge curate` and `pathgauge lint` learn from: trace files, or the evidence
that a collector has kept.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from pathgauge.collector.api import models
from pathgauge.collector.api.queries import ResultQuery
from pathgauge.collector.cli.result_sources.source import ResultSource, SourceError, newest
from pathgauge.collector.core.curation.grouping import Observed
from pathgauge.collector.core.curation.kept import observed_in
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evidence.evidence import decode
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.opinion import NOBODY, Opinion, opinion
from pathgauge.collector.core.feedback.subjects import about_runs, newest as newest_answers
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.core.references import OF_KNOWN_SCENARIO
from pathgauge.collector.offline.progress import Progress, unreported
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.matching.wording import counted


@dataclass(slots=True)
class Traffic:
    """Invocations, and what is missing."""

    observed: list[Observed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def of_files(replayed: Iterable[Replayed], rules: VerdictRules) -> Traffic:
    """The invocations of trace files."""
    traffic = Traffic()
    evaluations: list[Evaluation] = []
    answers: list[Answer] = []
    for one in replayed:
        traffic.notes += one.notes
        evaluations += [found for found in one.evaluations if found.session is None]
        answers += one.answers
    people = _opinions(evaluations, answers, rules)
    for evaluation in evaluations:
        match = evaluation.match
        traffic.observed.append(
            Observed(
                evaluation.invocation,
                evaluation.failed,
                match.turn is not None or match.unmatched in OF_KNOWN_SCENARIO,
                match.turn_index,
                people.get(evaluation.key, NOBODY),
            )
        )
    return traffic


def _opinions(
    evaluations: Iterable[Evaluation], answers: Iterable[Answer], rules: VerdictRules
) -> Mapping[EvaluationKey, Opinion]:
    """What people say of the runs."""
    runs: dict[tuple[str, str], dict[str, Evaluation]] = {}
    for one in evaluations:
        tenant, trace_id, span_id = one.key
        runs.setdefault((tenant, trace_id), {})[span_id] = one
    given: dict[tuple[str, str], list[Answer]] = {}
    for answer in newest_answers(answers):
        given.setdefault((answer.tenant, answer.trace_id), []).append(answer)
    return {
        of_trace[span_id].key: opinion(rules, said, _criteria(of_trace[span_id]))
        for key, of_trace in runs.items()
        for span_id, said in about_runs(given.get(key, ()), of_trace).runs.items()
    }


def _criteria(evaluation: Evaluation) -> frozenset[str]:
    return frozenset(result.criterion.name for result in evaluation.results)


def of_source(
    source: ResultSource, query: ResultQuery, limit: int, progress: Progress = unreported
) -> Traffic:
    """The newest invocations of a collector. The results of sessions are no runs: their turns are.
    Raises `StoreError`.
    """
    traffic = Traffic()
    missing: Counter[str] = Counter()
    runs = (one for one in newest(source, query, sys.maxsize) if one.session is None)
    found = list(islice(runs, limit))
    tenants = sorted({one.tenant or '""' for one in found})
    if len(tenants) > 1:  # references of one tenant must not hold what another one sent
        raise SourceError(f"found results of {', '.join(tenants)}, expected one: give --tenant")
    for number, result in enumerate(found):
        progress("reading the evidence of the runs", number, len(found))
        why = _add(traffic, source, result)
        if why is not None:
            missing[why] += 1
    traffic.notes += [
        f"{counted(count, 'run')} left out: {why}" for why, count in sorted(missing.items())
    ]
    return traffic


def _add(traffic: Traffic, source: ResultSource, result: models.Result) -> str | None:
    """Add one run; or why it cannot be used."""
    [explained] = source.explained(result.trace_id, result.span_id, result.tenant).results
    if explained.evidence is None:
        return "what they did is not kept; see the configuration key evidence.keep"
    people = Opinion(explained.people.good, explained.people.bad)
    observed = observed_in(decode(json.dumps(explained.evidence)), people)
    if observed is None:
        return "they are too long to be kept in full"
    traffic.observed.append(observed)
    return None
