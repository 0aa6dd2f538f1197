"""Prints one stored result after the other, with everything that explains it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from rich.console import Console

from pathgauge.collector.api import models
from pathgauge.collector.cli.output.details import print_criterion, print_evidence, print_legend
from pathgauge.collector.cli.output.numbers import verdict_text
from pathgauge.collector.cli.output.printing import print_text
from pathgauge.collector.cli.output.report import style_of
from pathgauge.collector.cli.output.results import time_text, why
from pathgauge.collector.core.evidence.evidence import Evidence, decode


def print_explained(shown: Iterable[models.Explained], out: Console) -> list[str]:
    """Print the results; returns messages about what is not kept."""
    messages, compared = [], False
    for one in shown:
        evidence = _evidence(one)
        _print_result(one.result, evidence, out)
        if evidence is not None:
            compared = print_evidence(evidence, out) or compared
            continue
        for criterion in one.result.criteria:
            print_criterion(criterion, out)
        print_text(out, "")
        messages.append(
            f"trace {one.result.trace_id}, span {one.result.span_id}: what explains the result is"
            " not kept; the key `evidence` of the configuration says what is"
        )
    if compared:
        print_legend(out)
    return messages


def _evidence(explained: models.Explained) -> Evidence | None:
    """`None` also for evidence of a collector of an incompatible version."""
    if explained.evidence is None:
        return None
    try:
        return decode(json.dumps(explained.evidence))
    except ValueError:
        return None


def _print_result(result: models.Result, evidence: Evidence | None, out: Console) -> None:
    kind = verdict_text(result.verdict) + (f", {result.category}" if result.category else "")
    reason = why(result)
    headline = f"{time_text(result.time)} {kind}" + (f": {reason}" if reason else "")
    print_text(out, headline, style=style_of(result.verdict))
    for fact in _facts(result, evidence):
        print_text(out, fact, indent=2)


def _facts(result: models.Result, evidence: Evidence | None) -> Iterator[str]:
    yield f"trace {result.trace_id}, span {result.span_id}"
    known = {
        "agent": result.agent,
        "version": result.agent_version,
        "scenario": result.scenario_id,
        "reference": result.reference_version,
        "tenant": result.tenant or None,
        "seconds": result.duration_s and f"{result.duration_s:.3g}",
        "flags": " ".join(result.flags) or None,
    }
    yield ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)
    if evidence is not None and evidence.cut:
        yield "long texts and lists were cut before they were stored"
