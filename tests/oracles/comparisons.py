"""Which scorer or test is compared with which result of which oracle, and where the two are meant
to differ.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random
from typing import Any, get_args

from pathgauge import (
    ExpectedCall,
    FinalResponseMatch,
    MatchMode,
    MatchType,
    ReferenceTurn,
    ResponseMatchScore,
    RubricBasedFinalResponseQuality,
    RubricBasedMultiTurnTrajectoryQuality,
    Score,
    Scorer,
    ToolCall,
    ToolTrajectoryAvgScore,
    ToolTrajectoryF1,
    TrajectoryAnyOrderMatch,
    TrajectoryExactMatch,
    TrajectoryInOrderMatch,
)
from pathgauge.scorers.authoring.builders import invocation, reference_turn
from pathgauge.scorers.judge_protocol import JudgeError
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.matching.argument_rules import ArgumentMode, Rule
from pathgauge.scorers.responses.bleu import Bleu
from pathgauge.scorers.responses.rouge import Rouge1, Rouge2, RougeL, RougeLSum
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.trajectories.langchain import Mode, TrajectoryMatch
from pathgauge.scorers.trajectories.steps import FirstDivergence, TrajectorySimilarity
from support.scripted_models import ScriptedAnswers, checklist_answer, failure, verdict_answer

from .cases import (
    Case,
    ascii_texts,
    judgements,
    messages,
    partial_orders,
    sparse_trajectories,
    texts,
    trajectories,
)
from .differences import (
    BLANK_REFERENCE,
    BLANKS,
    BOOLEANS,
    DIRECT_NANS,
    DIRECT_NANS_OF_KEYS,
    FAILURES,
    FEW_ANSWERS,
    FIRST_FIT,
    FIRST_FIT_IN_MESSAGES,
    FIRST_FIT_OF_ACTUAL,
    MESSAGES,
    NANS,
    NO_ARGUMENTS,
    NO_WORDS,
    NULLS,
    ONE_WORD,
    RUBRICS_ALONE,
    STEMS,
    TIES,
    UNREADABLE,
    Difference,
    Scoring,
    instead,
)


@dataclass(frozen=True)
class Comparison:
    """A result of an oracle, and the scorer that should give the same but for the differences."""

    result: str
    scoring: Scoring
    differences: tuple[Difference, ...] = ()

    def as_oracle(self, *, but: Difference | None = None) -> Scoring:
        """The scoring with the differences turned into the oracle's ways, `but` one of them."""
        scoring = self.scoring
        for difference in self.differences:
            if difference is not but:
                scoring = difference.oracle(scoring)
        return scoring


@dataclass(frozen=True)
class Oracle:
    """A program of `runners`, the cases that it is given, and what is made of its results."""

    runner: str
    cases: Callable[[Random], Case]
    comparisons: tuple[Comparison, ...]


def of_calls(scorer: Scorer) -> Scoring:
    """The scoring of trajectories."""

    def scoring(case: Case) -> float | None:
        actual, expected = case["actual"], case["expected"]
        messages = case.get("messages") or [None] * len(actual)
        groups, optional = (
            case.get("groups") or [None] * len(expected),
            case.get("optional") or [False] * len(expected),
        )
        made = [
            ToolCall(name, arguments, group=message)
            for (name, arguments), message in zip(actual, messages, strict=True)
        ]
        asked = [
            ExpectedCall(name, arguments, *how)
            for (name, arguments), *how in zip(expected, optional, groups, strict=True)
        ]
        return scorer.score(invocation(*made), reference_turn(*asked)).value

    return scoring


def of_texts(scorer: Scorer) -> Scoring:
    """The scoring of responses."""
    return lambda case: (
        scorer.score(
            invocation(final_response=case["response"]), ReferenceTurn(response=case["reference"])
        ).value
    )


UNSCORED = -1.0
"""What the oracle of judges says where there is no score."""


def of_labels(read: Callable[[Score], float | None]) -> Scoring:
    """The scoring of labels, each from a sample, by `final_response_match_v2`."""
    texts = {"valid": verdict_answer("valid"), "invalid": verdict_answer("invalid")}

    def scoring(case: Case) -> float:
        answers = [texts.get(label, failure("judge_malformed")) for label in case["labels"]]
        return _judged(_match(len(answers)), answers, read) if answers else UNSCORED

    return scoring


def of_ratings(case: Case) -> float:
    """The scoring of verdicts on rubrics, by `rubric_based_final_response_quality_v1`."""
    answers = [
        failure("judge_malformed") if isinstance(rating, str) else checklist_answer(*rating)
        for rating in case["ratings"]
    ]
    return (
        _judged(_rubrics(case["rubrics"], len(answers)), answers, lambda score: score.value)
        if answers
        else UNSCORED
    )


def of_session_ratings(case: Case) -> float:
    """The scoring of the same verdicts on a whole conversation, which is judged once."""
    answers = [
        failure("judge_malformed") if isinstance(rating, str) else checklist_answer(*rating)
        for rating in case["ratings"]
    ]
    if not answers:
        return UNSCORED
    rubrics = tuple(f"rubric {number}" for number in range(case["rubrics"]))
    judge = RubricBasedMultiTurnTrajectoryQuality(rubrics, samples=len(answers))
    turns = [SessionTurn(invocation())] * len(case["labels"])
    return _answered(judge.judge_session(turns, None, ScriptedAnswers(*answers)))


def of_single_turns(case: Case) -> float:
    """How many turns of a conversation have no score of it: there is one result for all."""
    return len(case["labels"]) - 1.0


@cache
def _match(samples: int) -> ModelJudge:
    return FinalResponseMatch(samples=samples)


@cache
def _rubrics(count: int, samples: int) -> ModelJudge:
    return RubricBasedFinalResponseQuality(
        tuple(f"rubric {number}" for number in range(count)), samples=samples
    )


def _judged(
    judge: ModelJudge, answers: Sequence[str | JudgeError], read: Callable[[Score], float | None]
) -> float:
    asked = ScriptedAnswers(*answers)
    return _answered(judge.judge(invocation(), reference_turn(response="so"), asked), read)


def _answered(
    judging: Coroutine[Any, Any, Score],
    read: Callable[[Score], float | None] = lambda score: score.value,
) -> float:
    try:
        judging.send(None)
    except StopIteration as end:
        value = read(end.value)
        return UNSCORED if value is None else value
    raise AssertionError("a judge waits for nothing but its answers")


def majority(score: Score) -> float | None:
    """The verdict of the majority, as a value."""
    return {"valid": 1.0, "invalid": 0.0}.get(score.details.get("verdict", ""))


PYTHON_EQUALITY = (BLANKS, BOOLEANS, NANS)
NO_SCORE = (BLANK_REFERENCE, NO_WORDS)
VERTEX: Mapping[MatchType, Scorer] = {
    MatchType.EXACT: TrajectoryExactMatch(),
    MatchType.IN_ORDER: TrajectoryInOrderMatch(),
    MatchType.ANY_ORDER: TrajectoryAnyOrderMatch(),
}


def _adk() -> Iterator[Comparison]:
    for match_type, vertex in VERTEX.items():
        for scorer in (ToolTrajectoryAvgScore(match_type), vertex):
            yield Comparison(match_type, of_calls(scorer), (*PYTHON_EQUALITY, NO_ARGUMENTS))
        yield Comparison(
            f"{match_type} ignore_args",
            of_calls(ToolTrajectoryAvgScore(match_type, ignore_args=True)),
            (BLANKS,),
        )


def _adk_response() -> Iterator[Comparison]:
    yield Comparison("response_match_score", of_texts(ResponseMatchScore()), (*NO_SCORE, STEMS))


def _assignment() -> Iterator[Comparison]:
    for algorithm in ("linear_sum_assignment", "maximum_bipartite_matching"):
        for mode in get_args(MatchMode):
            differences = (BLANKS,) if mode == "name_only" else PYTHON_EQUALITY
            yield Comparison(
                f"{algorithm} {mode}", of_calls(ToolTrajectoryF1(mode, ordered=False)), differences
            )


def _bleu() -> Iterator[Comparison]:
    for effective_order, lowercase in product((False, True), repeat=2):
        options = (
            f"{' effective_order' if effective_order else ''}{' lowercase' if lowercase else ''}"
        )
        yield Comparison(
            f"bleu{options}", of_texts(Bleu(effective_order, lowercase)), (BLANK_REFERENCE,)
        )


def _edit_distance() -> Iterator[Comparison]:
    yield Comparison("Indel names", of_calls(ToolTrajectoryF1()), (BLANKS,))
    yield Comparison("Indel calls", of_calls(ToolTrajectoryF1("name_and_args")), PYTHON_EQUALITY)
    yield Comparison("Levenshtein names", of_calls(TrajectorySimilarity("levenshtein")), (BLANKS,))
    yield Comparison("OSA names", of_calls(TrajectorySimilarity("osa")), (BLANKS,))
    yield Comparison("LCSseq names", of_calls(TrajectorySimilarity("lcs")), (BLANKS,))
    yield Comparison("Prefix names", of_calls(FirstDivergence()), (BLANKS,))
    yield Comparison("Prefix calls", of_calls(FirstDivergence("name_and_args")), PYTHON_EQUALITY)


INVERSE: Mapping[ArgumentMode, ArgumentMode] = {"subset": "superset", "superset": "subset"}
OVERRIDES: Mapping[str, Rule] = {"a": ("k", "l.p"), "b": "ignore"}


def _langchain() -> Iterator[Comparison]:
    """LangChain's `unordered` allows no other calls, which is `unordered_exact` here."""
    modes: tuple[tuple[str, Mode, tuple[Difference, ...]], ...] = (
        ("strict", "strict", (MESSAGES,)),
        ("unordered", "unordered_exact", ()),
        ("subset", "subset", ()),
        ("superset", "superset", ()),
    )
    for theirs, ours, differences in modes:
        yield Comparison(
            f"{theirs} exact", of_calls(TrajectoryMatch(ours)), (BLANKS, BOOLEANS, *differences)
        )
        yield Comparison(
            f"{theirs} ignore", of_calls(TrajectoryMatch(ours, "ignore")), (BLANKS, *differences)
        )
        overriding = of_calls(TrajectoryMatch(ours, tool_args_match_overrides=OVERRIDES))
        yield Comparison(
            f"{theirs} overrides",
            overriding,
            (BLANKS, BOOLEANS, NULLS, DIRECT_NANS_OF_KEYS, *differences),
        )
    for arguments in INVERSE:
        yield from _langchain_arguments(arguments)


def _langchain_arguments(arguments: ArgumentMode) -> Iterator[Comparison]:
    strict, unordered = (
        of_calls(TrajectoryMatch("strict", arguments)),
        of_calls(TrajectoryMatch("unordered_exact", arguments)),
    )
    subset, superset = (
        of_calls(TrajectoryMatch("subset", arguments)),
        of_calls(TrajectoryMatch("superset", arguments)),
    )
    inverse = of_calls(TrajectoryMatch("subset", INVERSE[arguments]))
    turned = instead(
        "in mode `subset`, `subset` and `superset` of arguments change places",
        "It compares the reference with the agent.",
        inverse,
    )
    both_ways = instead(
        "in mode `unordered`, arguments have to be a subset or superset both ways",
        "So only equal ones are; the calls are matched twice, in both directions.",
        FIRST_FIT.oracle(superset),
        FIRST_FIT_OF_ACTUAL.oracle(inverse),
    )
    equality = (BLANKS, BOOLEANS, DIRECT_NANS)
    yield Comparison(f"strict {arguments}", strict, (FIRST_FIT_IN_MESSAGES, MESSAGES, *equality))
    yield Comparison(f"unordered {arguments}", unordered, (both_ways, *equality))
    yield Comparison(f"subset {arguments}", subset, (turned, FIRST_FIT_OF_ACTUAL, *equality))
    yield Comparison(f"superset {arguments}", superset, (FIRST_FIT, *equality))


def _partial_order() -> Iterator[Comparison]:
    modes: Mapping[MatchMode, tuple[Difference, ...]] = {
        "name_only": (BLANKS,),
        "name_and_required_args": PYTHON_EQUALITY,
    }
    for mode, differences in modes.items():
        yield Comparison(f"in_order {mode}", of_calls(ToolTrajectoryF1(mode)), differences)
        yield Comparison(
            f"parallel {mode}",
            of_calls(ToolTrajectoryF1(mode, parallel_calls="any_order")),
            differences,
        )
        yield Comparison(
            f"any_order {mode}", of_calls(ToolTrajectoryF1(mode, ordered=False)), differences
        )


def _pydantic_trajectory() -> Iterator[Comparison]:
    yield Comparison("exact", of_calls(ToolTrajectoryAvgScore(ignore_args=True)), (BLANKS,))
    yield Comparison("in_order", of_calls(ToolTrajectoryF1()), (BLANKS,))
    yield Comparison("any_order", of_calls(ToolTrajectoryF1(ordered=False)), (BLANKS,))
    yield Comparison("tools", of_calls(TrajectoryMatch("unordered_exact", "ignore")), (BLANKS,))
    yield Comparison(
        "tools allow_extra", of_calls(TrajectoryMatch("any_order", "ignore")), (BLANKS,)
    )


def _rouge() -> Iterator[Comparison]:
    for stemmer, option in ((False, ""), (True, " stemmer")):
        differences = (*NO_SCORE, STEMS) if stemmer else NO_SCORE
        for scorer in (Rouge1(stemmer), ResponseMatchScore(stemmer)):
            yield Comparison(f"rouge1{option}", of_texts(scorer), differences)
        yield Comparison(f"rouge2{option}", of_texts(Rouge2(stemmer)), (*differences, ONE_WORD))
        yield Comparison(f"rougeL{option}", of_texts(RougeL(stemmer)), differences)
        yield Comparison(f"rougeLsum{option}", of_texts(RougeLSum(stemmer)), differences)


def _adk_judges() -> Iterator[Comparison]:
    yield Comparison("majority", of_labels(majority), (TIES, UNREADABLE, FAILURES))
    yield Comparison("share", of_labels(lambda score: score.value), (FEW_ANSWERS,))
    yield Comparison("rubrics", of_ratings, (TIES, RUBRICS_ALONE, UNREADABLE, FAILURES))


def _adk_sessions() -> Iterator[Comparison]:
    differences = (TIES, RUBRICS_ALONE, UNREADABLE, FAILURES)
    yield Comparison("rubrics of the conversation", of_session_ratings, differences)
    yield Comparison("turns without a score", of_single_turns)


TRAJECTORIES_AND_TEXTS = (
    Oracle("adk", sparse_trajectories, tuple(_adk())),
    Oracle("adk_judges", judgements, tuple(_adk_judges())),
    Oracle("adk_response", texts, tuple(_adk_response())),
    Oracle("adk_sessions", judgements, tuple(_adk_sessions())),
    Oracle("assignment", trajectories, tuple(_assignment())),
    Oracle("bleu", texts, tuple(_bleu())),
    Oracle("edit_distance", trajectories, tuple(_edit_distance())),
    Oracle("langchain_agentevals", messages, tuple(_langchain())),
    Oracle("partial_order", partial_orders, tuple(_partial_order())),
    Oracle("pydantic_trajectory", trajectories, tuple(_pydantic_trajectory())),
    Oracle("rouge", ascii_texts, tuple(_rouge())),
)
