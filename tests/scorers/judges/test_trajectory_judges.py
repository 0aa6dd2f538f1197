"""Judges of the trajectory, with the scales of LangChain's."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge import TrajectoryAccuracy, TrajectoryAccuracyWithReference
from pathgauge.scorers.authoring.builders import (
    expected_call,
    invocation,
    reference_turn,
    tool_call,
)
from support.scripted_models import ScriptedAnswers, verdict_answer

ACTUAL = invocation(tool_call("search", q="tea"), user_input="tea?")
EXPECTED = reference_turn(expected_call("search", q="tea"))


@pytest.mark.parametrize("kind", [TrajectoryAccuracy, TrajectoryAccuracyWithReference])
@pytest.mark.parametrize(
    ("options", "answers", "value", "reason"),
    [
        ({}, [True], 1.0, None),
        ({}, [False], 0.0, None),
        ({"samples": 3}, [True, False, True], 1.0, None),
        ({}, [1], None, "judge_malformed"),
        ({"continuous": True}, [0.8], 0.8, None),
        ({"continuous": True, "samples": 2}, [0.25, 0.75], 0.5, None),
        ({"continuous": True, "samples": 3, "average": "median"}, [0.0, 0.75, 1.0], 0.75, None),
        ({"continuous": True}, [7.3], None, "judge_malformed"),
        ({"choices": (0, 0.5, 1)}, [0.5], 0.5, None),
        ({"choices": (0, 1), "samples": 3}, [0, 1, 0], 0.0, None),
        ({"choices": (0, 1)}, [0.4], None, "judge_malformed"),
    ],
)
async def test_scales_are_boolean_continuous_or_choices(
    kind: type[TrajectoryAccuracy],
    options: dict[str, Any],
    answers: list[Any],
    value: float | None,
    reason: str | None,
) -> None:
    score = await kind(**options).judge(
        ACTUAL, EXPECTED, ScriptedAnswers(*map(verdict_answer, answers))
    )
    assert (score.value, score.reason) == (value, reason)


def test_each_scale_has_its_own_template() -> None:
    scales: list[dict[str, Any]] = [
        {},
        {"continuous": True},
        {"choices": (0, 1)},
        {"choices": (0, 0.5, 1)},
    ]
    judges = [
        kind(**scale)
        for kind in (TrajectoryAccuracy, TrajectoryAccuracyWithReference)
        for scale in scales
    ]
    assert len({judge.template for judge in judges}) == len(judges)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            {"continuous": True, "choices": (0, 1)},
            "choices: found together with continuous, expected only one of them",
        ),
        ({"choices": (0, 2)}, "choices: expected numbers from 0 to 1"),
        ({"choices": (1,)}, "choices: found 1, expected several different numbers"),
        ({"average": "max"}, "average: found 'max', expected one of mean, median"),
    ],
)
def test_invalid_scales_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - full match below
        TrajectoryAccuracy(**options)
    assert str(refusal.value) == error
