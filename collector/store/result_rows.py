"""The rows of the table of results: one for each revision of an evaluation.

A row holds scores, verdicts and thresholds, but no content of the telemetry: that is in the row of
its evidence.
"""

from __future__ import annotations

from typing import Any

import orjson

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.shadow_result import Shadowed
from pathgauge.collector.core.evidence.evidence import overall
from pathgauge.collector.store.schema import checksum, name_of
from pathgauge.scorers.types import Json

COLUMNS = "tenant, trace_id, span_id, revision, at, agent, scenario, body"
QUERY_COLUMNS = "verdict, category, signature, conversation"
"""Columns by which queries find a row. They repeat what is in the body, so the checksum does not
need them.
"""


def row_of(evaluation: Evaluation, wall: float) -> tuple[Any, ...]:
    """The whole row of an evaluation that was published at `wall`, in Unix seconds."""
    invocation, reference = evaluation.invocation, evaluation.match.reference
    failure = evaluation.failure
    body: dict[str, Json] = {
        "verdict": overall(result.verdict for result in evaluation.results),
        "failure": failure and [failure.category, failure.signature],
        "criteria": _criteria(evaluation),
        "reference": reference.version if reference else None,
        "unmatched": evaluation.match.unmatched,
        "agent_version": name_of(invocation.agent_version) or None,
        "conversation": name_of(invocation.conversation_id) or None,
        "dialect": invocation.dialect,
        "flags": sorted(invocation.flags),
        "closed_by": evaluation.closed_by,
        "start_ns": invocation.start_ns,
        "end_ns": invocation.end_ns,
    }
    if evaluation.session is not None:
        body["session"] = {
            "conversation": name_of(invocation.conversation_id),
            "ended_by": evaluation.session.ended_by,
            "turns": evaluation.session.members,
        }
    if evaluation.shadow is not None:
        body["shadow"] = _shadow(evaluation.shadow)
    text = orjson.dumps(body).decode()
    row = (
        *evaluation.key,
        evaluation.revision,
        wall,
        name_of(invocation.agent),
        name_of(evaluation.scenario_id),
        text,
    )
    return complete(row, body)


def complete(row: tuple[Any, ...], body: dict[str, Json]) -> tuple[Any, ...]:
    """The `COLUMNS` with their checksum and the `QUERY_COLUMNS`."""
    session = body.get("session") or {"conversation": ""}
    failure = body["failure"] or ("", "")
    return (*row, checksum(*row), body["verdict"], *failure, session["conversation"])


def with_judged(row: tuple[Any, ...], evaluation: Evaluation) -> tuple[Any, ...]:
    """The whole row of the `COLUMNS`, with the results of judges."""
    body = orjson.loads(row[-1])
    body["criteria"] += _criteria(evaluation)
    body["verdict"] = overall(one["verdict"] for one in body["criteria"])
    failure = evaluation.failure
    body["failure"] = body.get("failure") or (failure and [failure.category, failure.signature])
    return complete((*row[:-1], orjson.dumps(body).decode()), body)


def with_judged_in_shadow(row: tuple[Any, ...], judged: Shadowed) -> tuple[Any, ...] | None:
    """The `COLUMNS` with the results of judges in shadow; `None` if other criteria were in shadow
    when the evaluation was published.
    """
    body = orjson.loads(row[-1])
    shadow = body.get("shadow")
    if shadow is None or shadow["setup"] != judged.setup:
        return None
    shadow["criteria"] += [one._asdict() for one in judged.results]
    return (*row[:-1], orjson.dumps(body).decode())


def _criteria(evaluation: Evaluation) -> list[dict[str, Json]]:
    return [
        {
            "name": result.criterion.name,
            "scorer": f"{result.criterion.scorer.name} {result.criterion.scorer.version}",
            "value": result.score.value,
            "reason": result.score.reason,
            "verdict": result.verdict,
            "threshold": result.criterion.threshold,
            **({"judge": result.criterion.judge} if result.criterion.judge else {}),
        }
        for result in evaluation.results
    ]


def _shadow(shadowed: Shadowed) -> Json:
    return {
        "setup": shadowed.setup,
        "reference": shadowed.reference,
        "criteria": [one._asdict() for one in shadowed.results],
    }
