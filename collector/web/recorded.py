"""The button "Use as reference": a file that expects what one run did."""

from __future__ import annotations

import re
from collections.abc import Iterator

from starlette.responses import Response

from pathgauge.collector.api import conversations
from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.core.evidence.evidence import Evidence
from pathgauge.collector.core.references.export_native import to_yaml
from pathgauge.collector.core.references.recorded_turn import RecordOptions, recorded_turn
from pathgauge.collector.store.queries.stored_result import StoredResult
from pathgauge.collector.web import answers
from pathgauge.collector.web.result import shown_result
from pathgauge.collector.web.visit import Visit
from pathgauge.scorers.matching.wording import one_line
from pathgauge.scorers.types import Reference

NEW_SCENARIO = "new-scenario"


def reference_file(visit: Visit) -> Response:
    """A reference that expects what this run did, as `pathgauge record` would write it."""
    stored, evidence = shown_result(visit)
    if stored.session is not None:
        raise ProblemError(409, "This is a session. One of its turns can become a reference.")
    if evidence is None:
        raise ProblemError(404, "What the agent did is not kept, so it cannot become a reference.")
    if evidence.cut:
        raise ProblemError(
            409, "The invocation is too long to be kept in full, so it cannot become a reference."
        )
    turn, notes = recorded_turn(evidence.invocation, RecordOptions())
    scenario_id = evidence.scenario_id or NEW_SCENARIO
    head = [f"From trace {stored.trace_id}, span {stored.span_id}. Review it before use."]
    head += _one_of_several_turns(visit, stored, evidence)
    if stored.flags:
        head.append(f"Defects of the telemetry: {', '.join(stored.flags)}")
    comment = "".join(f"# {_printable(line)}\n" for line in (*head, *notes))
    body = comment + to_yaml([Reference(_encodable(scenario_id), (turn,))])
    name = re.sub(r"[^0-9A-Za-z]", "", stored.trace_id)[:64]
    return Response(
        body.encode("utf-8", "replace"),
        headers={
            **answers.HEADERS,
            "content-disposition": f'attachment; filename="reference-{name}.yaml"',
        },
        media_type="application/yaml",
    )


def _one_of_several_turns(visit: Visit, stored: StoredResult, evidence: Evidence) -> Iterator[str]:
    """That the conversation has other turns, with which the reference would be compared, too."""
    turns = conversations.turns(visit.sources, stored, evidence)
    if len(turns) < 2 and not evidence.turn_index:
        return
    numbers = [one.index for one in turns if one.result.key == stored.key]
    number = next((one for one in numbers if one is not None), evidence.turn_index)
    which = "one turn" if number is None else f"turn {number}"
    counted = "" if number is None else ", counted from 0"
    yield f"This is only {which} of a conversation{counted}."
    yield "A reference with one turn is compared with every turn of its conversations."


def _printable(line: str) -> str:
    """A comment must stay on its line."""
    return "".join(one if one.isprintable() else "?" for one in one_line(line))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
