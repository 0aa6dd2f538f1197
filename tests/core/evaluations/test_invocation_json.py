"""Whatever is read from telemetry can be stored, and read again."""

from __future__ import annotations

import pytest

from pathgauge import ToolTrajectoryAvgScore
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluator,
    SessionResult,
)
from pathgauge.collector.core.evaluations.invocation_json import from_json, to_json
from pathgauge.collector.core.evaluations.session_json import session_from_json, session_to_json
from pathgauge.collector.core.evidence.evidence import decode, encode, evidence_of
from pathgauge.collector.core.invocations.messages.literals import MAX_LEVELS
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.references import Match
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.types import ExpectedCall, Invocation, Reference, ReferenceTurn, ToolCall

JSON = ('{"a":', "}")
REPR = ("{'a':", "}")


@pytest.mark.parametrize(("opening", "closing"), [JSON, REPR])
def test_the_deepest_arguments_that_are_decoded_can_be_read_again(
    opening: str, closing: str
) -> None:
    text = opening * MAX_LEVELS + "1" + closing * MAX_LEVELS
    deep = decoded(text)
    assert isinstance(deep, dict)
    run = Invocation("ab" * 16, "cd" * 8, "genai", tool_calls=(ToolCall("t", deep, result=deep),))
    assert from_json(to_json(run)) == run

    session = SessionResult("idle", (), (SessionTurn(run, {}),))
    assert session_from_json(session_to_json(run, session)) == session

    turn = ReferenceTurn(tool_calls=(ExpectedCall("t", {"a": {"b": deep}}),))
    evaluator = Evaluator((Criterion("avg", ToolTrajectoryAvgScore(), 1.0),))
    evaluation = evaluator.evaluate(run, Match(Reference("x", (turn,)), turn, 0))
    assert decode(encode(evidence_of(evaluation))).invocation.tool_calls == run.tool_calls
