"""The table and the details of `pathgauge score`: on terminals of any width, and in a pipe."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rich.console import Console

from pathgauge import Reference, ReferenceTurn, Score, ToolTrajectoryF1
from pathgauge.collector.cli.output.details import (
    LEGEND,
    MAX_TEXT_CHARS,
    Sourced,
    failures,
    failures_first,
    print_details,
)
from pathgauge.collector.cli.output.printing import Column, Table, print_text
from pathgauge.collector.cli.output.report import print_gate, print_reasons
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result
from pathgauge.collector.core.references import Match
from pathgauge.collector.offline.gate import Gate, Requirements, judge
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.types import ExpectedCall, ToolCall

LONG_NAME = "rubric_based_final_response_quality_v1"


def evaluation(
    value: float | None = 1.0,
    name: str = "f1",
    run: str | None = None,
    expected: ReferenceTurn | None = None,
    **actual: Any,
) -> Evaluation:
    criterion = Criterion(name, ToolTrajectoryF1(), 0.5)
    scenario = Reference("refund", (expected or ReferenceTurn(),))
    score = Score.not_evaluated("args_not_recorded") if value is None else Score(value)
    if expected is not None and expected.tool_calls is not None:
        done = invocation(**actual)
        score = ToolTrajectoryF1("name_only").score(done, expected)
    return Evaluation(
        invocation(scenario_id="refund", run_id=run, **actual),
        Match(scenario, scenario.turns[0], 0),
        (Result(criterion, score, criterion.verdict(score.value)),),
        "root_ended",
    )


def gate(*evaluations: Evaluation, absent: tuple[str, ...] = ()) -> Gate:
    references = [Reference(name, (ReferenceTurn(),)) for name in absent]
    required = Requirements(scenarios=frozenset(absent[:1]))
    return judge([Replayed("traces", evaluations, (), ())], None, references, required)


def terminal(width: int = 80) -> Console:
    return Console(file=StringIO(), force_terminal=True, width=width, color_system=None)


def pipe() -> Console:
    return Console(file=StringIO(), force_terminal=False, width=80)


def written(out: Console) -> list[str]:
    assert isinstance(out.file, StringIO)
    return out.file.getvalue().splitlines()


def test_a_terminal_gets_a_table() -> None:
    shown = gate(
        evaluation(1.0, run="1"),
        evaluation(0.0, run="2"),
        evaluation(None, name="other"),
        evaluation(1.0, name="other"),
        absent=("must", "may"),
    )
    out = terminal()
    print_gate(shown, out)
    assert written(out) == [
        "agent, scenario, criterion         score  threshold  judged  verdict",
        "agent refund",
        "  f1                        0.500 ±0.707      0.500       2  passed",
        "  other                            1.000      0.500  1 of 2  passed",
        "    not scored: 1 args_not_recorded",
        "must                                                      0  not run (required)",
        "may                                                       0  not run",
        "±: standard deviation of the test runs",
    ]


def test_a_pipe_gets_cells_separated_by_tabs() -> None:
    shown = gate(
        evaluation(1.0, run="1"),
        evaluation(0.0, run="2"),
        evaluation(None, name="other", agent="a\tb"),
        absent=("must", "may"),
    )
    out = pipe()
    print_gate(shown, out)
    assert [line.split("\t") for line in written(out)[1:]] == [
        [
            *("a\\tb", "refund", "other", "", "", "0.500", "0", "1"),
            "not evaluated",
            "1 args_not_recorded",
        ],
        ["agent", "refund", "f1", "0.500", "0.707", "0.500", "2", "2", "passed", ""],
        ["", "must", "", "", "", "", "0", "0", "not run", "required"],
        ["", "may", "", "", "", "", "0", "0", "not run", ""],
    ]


@pytest.mark.parametrize("out", [terminal(), pipe()], ids=["terminal", "pipe"])
def test_nothing_scored_is_no_table(out: Console) -> None:
    print_gate(gate(), out)
    assert written(out) == []


def test_a_narrow_terminal_gets_a_list() -> None:
    out = terminal(60)
    print_gate(gate(evaluation(1.0, name=LONG_NAME), absent=("must",)), out)
    assert written(out) == [
        "agent refund",
        f"  {LONG_NAME}",
        "    score 1.000, threshold 0.500, judged 1, verdict passed",
        "must",
        "  judged 0, verdict not run (required)",
    ]


WORDS = st.lists(st.text("abcdefgh_-", min_size=1, max_size=45), min_size=1, max_size=30)


@given(WORDS, st.integers(20, 120), st.integers(0, 6))
def test_no_word_is_broken_and_none_is_lost(words: list[str], width: int, indent: int) -> None:
    out = terminal(width)
    print_text(out, " ".join(words), indent=indent)
    lines = written(out)
    assert [word for line in lines for word in line.split()] == words
    assert all(len(line) <= width or len(line.split()) == 1 for line in lines)


@given(st.lists(WORDS.filter(lambda words: len(words) > 2), max_size=5), st.integers(20, 200))
def test_a_table_has_all_words_whole_in_every_width(rows: list[list[str]], width: int) -> None:
    out = terminal(width)
    table = Table(Column("first"), Column("second", right=True), Column("third"))
    for first, second, *others in rows:
        table.add(first, second, " ".join(others))
    table.print(out)
    lines = written(out)
    found = re.findall(r"[a-h_-]+", re.sub(r"\b(first|second|third)\b,?", "", " ".join(lines)))
    assert sorted(found) == sorted(word for row in rows for word in row)
    assert all(len(line) <= width or len(line.split()) == 1 for line in lines)


def test_reasons_and_gaps_go_to_standard_error() -> None:
    err = pipe()
    print_reasons(gate(evaluation(0.25), evaluation(None), absent=("must",)), err)
    assert written(err) == [
        "f1 for agent Failed. Expected 0.5, but got 0.25. [refund]",
        "    args not recorded",
        "Coverage 0.5, expected 1: f1 scored 1 of 2 invocations (1 args_not_recorded).",
        "Required scenarios were not run: must.",
    ]


def sourced(*evaluations: Evaluation) -> list[Sourced]:
    return [Sourced("traces", one) for one in evaluations]


def test_failures_come_first_then_what_was_not_scored() -> None:
    passed, unscored, failed = (
        evaluation(value, trace_id=name) for value, name in ((1.0, "a"), (None, "b"), (0.0, "c"))
    )
    replayed = [Replayed("one", (passed, unscored), (), ()), Replayed("two", (failed,), (), ())]
    shown = judge(replayed)
    order = [("two", failed), ("one", unscored), ("one", passed)]
    assert failures_first(replayed, shown) == order
    assert failures(replayed, shown) == order[:2]
    lenient = judge(replayed, requirements=Requirements(0.5))
    assert failures(replayed, lenient) == order[:1]


TRAJECTORY = ReferenceTurn(
    "Refund order 17.", (ExpectedCall("lookup"), ExpectedCall("refund")), "It is refunded."
)


def test_details_have_the_texts_the_scores_and_both_trajectories() -> None:
    shown = evaluation(
        expected=TRAJECTORY,
        trace_id="t1",
        user_input="Please refund.\nThanks.",
        final_response="No.",
        tool_calls=(ToolCall("refund", {"order": "17"}), ToolCall("mail")),
    )
    out = terminal()
    print_details(sourced(shown), out)
    assert written(out) == [
        "agent refund trace t1",
        "  user: Please refund.",
        "    Thanks.",
        "  expected answer: It is refunded.",
        "  actual answer: No.",
        "  f1 0.500 passed: 1 of 2 expected calls matched; missing lookup; unexpected",
        "    mail",
        "  f1",
        "  expected     actual",
        "  lookup    -",
        '  refund    =  refund(order="17")',
        "            +  mail",
        "",
        LEGEND,
        "",
    ]


def test_trajectories_that_are_too_wide_are_shown_one_below_the_other() -> None:
    shown = evaluation(
        expected=TRAJECTORY,
        user_input="Please.",
        tool_calls=(ToolCall("refund", {"order": "17 " * 10, "why": "it is damaged"}),),
    )
    out = terminal(50)
    print_details(sourced(shown), out)
    assert written(out)[-7:] == [
        "  - lookup",
        '  = refund(order="17 17 17 17 17 17 17 17 17 17 ",',
        '    why="it is damaged")',
        "",
        "= matched, ~ other arguments, ? arguments not",
        "  recorded, - missing, + unexpected",
        "",
    ]


@pytest.mark.parametrize(
    ("turn", "actual", "texts"),
    [
        (ReferenceTurn("Hello?"), {"user_input": None, "final_response": None}, ["  user: Hello?"]),
        (
            ReferenceTurn(response="Yes."),
            {"user_input": "Really?", "final_response": None},
            ["  user: Really?", "  expected answer: Yes.", "  actual answer: (not recorded)"],
        ),
        (ReferenceTurn(), {"user_input": None, "final_response": ""}, ["  actual answer:"]),
        (
            ReferenceTurn(),
            {"user_input": "x" * (MAX_TEXT_CHARS + 1), "final_response": None},
            [f"  user: {'x' * (MAX_TEXT_CHARS - 1)}…"],
        ),
        (
            ReferenceTurn(),
            {"user_input": "\x1b[2Jhi", "final_response": None},
            ["  user: \\x1b[2Jhi"],
        ),
    ],
)
def test_details_show_what_is_known(
    turn: ReferenceTurn, actual: dict[str, Any], texts: list[str]
) -> None:
    out = pipe()
    print_details(sourced(evaluation(expected=turn, **actual)), out)
    assert written(out)[1:-2] == texts


def test_without_trajectories_there_is_no_legend() -> None:
    out = terminal()
    print_details(sourced(evaluation()), out)
    assert LEGEND not in written(out)
