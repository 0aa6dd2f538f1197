"""Look-up of the reference turn of an invocation, and reasons why there is none."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.types import Flag, Reference, ReferenceTurn

HELLO, BYE, OTHER = (
    ReferenceTurn("Hello  there"),
    ReferenceTurn("Bye"),
    ReferenceTurn("Something else"),
)
SINGLE = Reference("single", (HELLO,))
DIALOGUE = Reference("dialogue", (HELLO, BYE))
TWINS = (Reference("twin 1", (OTHER,)), Reference("twin 2", (OTHER,)))
REFERENCES = (SINGLE, DIALOGUE, *TWINS)


@pytest.mark.parametrize(
    ("scenario", "flags", "turn", "match"),
    [
        ("single", (), None, Match(SINGLE, HELLO, 0)),
        ("single", (), 7, Match(SINGLE, HELLO, 0)),
        ("dialogue", (), 1, Match(DIALOGUE, BYE, 1)),
        ("dialogue", (), 2, Match(unmatched="unexpected_turn")),
        ("dialogue", (), None, Match(unmatched="no_conversation_id")),
        ("nobody knows", (), 0, Match(unmatched="unknown_scenario")),
        (None, (), 0, Match(unmatched="no_scenario_id")),
        ("single", ("scenario_conflict",), 0, Match(unmatched="scenario_conflict")),
    ],
)
def test_matching_by_scenario_id(
    scenario: str | None, flags: tuple[Flag, ...], turn: int | None, match: Match
) -> None:
    assert (
        ReferenceSet(REFERENCES).match(
            invocation(scenario_id=scenario, flags=frozenset(flags)), turn
        )
        == match
    )


@pytest.mark.parametrize(
    ("said", "scenario", "match"),
    [
        ("hello THERE", None, Match(SINGLE, HELLO, 0)),
        ("hello THERE", "nobody knows", Match(unmatched="unknown_scenario")),
        ("Bye", None, Match(unmatched="no_scenario_id")),
        ("Something else", None, Match(unmatched="no_scenario_id")),
        (None, None, Match(unmatched="no_scenario_id")),
    ],
)
def test_matching_by_user_input_if_enabled(
    said: str | None, scenario: str | None, match: Match
) -> None:
    assert (
        ReferenceSet(REFERENCES, match_user_input=True).match(
            invocation(scenario_id=scenario, user_input=said)
        )
        == match
    )


def test_user_input_alone_matches_nothing_by_default() -> None:
    assert ReferenceSet(REFERENCES).match(
        invocation(scenario_id=None, user_input="Hello there")
    ) == Match(unmatched="no_scenario_id")
