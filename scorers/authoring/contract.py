"""The rules that every scorer obeys: `check_scorer` names the one that is broken, and the input.

check_scorer(MyScorer(), [(actual, expected)])
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from typing import Any, SupportsFloat, get_args

from pathgauge.scorers.authoring.ranges import is_binary
from pathgauge.scorers.authoring.situations import Session, Situation, sessions, situations
from pathgauge.scorers.session_protocol import SessionScorer, scores_sessions
from pathgauge.scorers.types import Reason, Score, Scorer

_ATTRIBUTES = ("name", "version", "low", "high", "higher_is_better", "needs_reference", "score")


def check_scorer(scorer: Scorer, more: Iterable[Situation] = ()) -> None:
    """Raise `AssertionError` if `scorer` violates the contract of `Scorer` for about twenty typical
    and hostile inputs, or for `more`: pairs of an `Invocation` and a `ReferenceTurn` or `None`. The
    message names the broken rule and the input.

    An exception of the scorer passes through, with a note that names the input.
    """
    with naming(scorer):
        _check_declaration(scorer)
    for situation in (*situations(), *more):
        _check(scorer, scorer.score, situation)
    if scores_sessions(scorer):
        for session in sessions():
            _check(scorer, scorer.score_session, session)


def _check(
    scorer: Scorer | SessionScorer, score: Callable[..., Score], situation: Situation | Session
) -> None:
    with naming(scorer, *situation):
        before = deepcopy(situation)
        found = score(*situation)
        check_score(scorer, found)
        require(before == situation, "changes what it scores")
        again = score(*before)
        require(again == found, "scores the same thing differently the second time")
        if situation[1] is None and scorer.needs_reference:
            is_refused = found.reason == "no_reference"
            require(is_refused, "needs a reference, and scores without one")


class _ViolationError(Exception):
    """A broken rule of the contract."""


@contextmanager
def naming(scorer: object, *situation: object) -> Iterator[None]:
    """Add the scorer and its input to the message of a violation, or to an exception of the scorer.
    Only here, because the text of a large input takes long.
    """
    try:
        yield
    except _ViolationError as violation:
        raise AssertionError(f"{violation}: {_place(scorer, situation)}") from violation
    except Exception as error:
        error.add_note(f"raised by {_place(scorer, situation)}")
        raise


def _place(scorer: object, situation: Sequence[object]) -> str:
    if not situation:
        return repr(scorer)
    actual, expected = (str(value)[:300] for value in situation)
    return f"{scorer!r} on {actual} against {expected}"


def require(condition: bool, problem: str) -> None:
    """Report a broken rule, inside of `naming`."""
    if not condition:
        raise _ViolationError(problem)


def _check_declaration(scorer: Scorer) -> None:
    require(not isinstance(scorer, type), "is a class, expected an instance")
    missing = [name for name in _ATTRIBUTES if not hasattr(scorer, name)]
    require(not missing, f"lacks {', '.join(missing)} of pathgauge.Scorer")
    require(is_dataclass(scorer), "is not a dataclass")
    snake_case = re.fullmatch("[a-z][a-z0-9_]*", scorer.name) is not None
    require(snake_case, f"has the name {scorer.name!r}, expected snake_case")
    require(bool(scorer.version), "has no version")
    valid = math.isfinite(scorer.low) and scorer.low < scorer.high
    require(valid, f"has the range [{scorer.low}, {scorer.high}]")
    _check_options(scorer)


def _check_options(scorer: Any) -> None:
    require(scorer.__dataclass_params__.frozen, "is not frozen")
    options = {field.name: getattr(scorer, field.name) for field in fields(scorer) if field.init}
    twin = replace(scorer, **options)
    try:
        same = twin == scorer and hash(twin) == hash(scorer)
    except TypeError as error:
        raise _ViolationError(f"has an option without a hash ({error})") from error
    require(same, "differs from a scorer with the same options")


def check_score(scorer: Scorer, score: Score) -> None:
    """The rules for what a scorer returns."""
    require(isinstance(score, Score), f"returns {type(score).__name__}, expected a Score")
    require(
        score.reason in (None, *get_args(Reason)),
        f"gives the reason {score.reason!r}, which is not in pathgauge.Reason",
    )
    consistent = (score.value is None) == (score.reason is not None)
    require(consistent, f"returns {score.value} with the reason {score.reason}")
    if score.value is not None:
        is_number = isinstance(score.value, SupportsFloat)
        require(is_number, f"returns the value {score.value!r}, expected a number")
        inside = math.isfinite(score.value) and scorer.low <= score.value <= scorer.high
        require(inside, f"returns {score.value}, outside [{scorer.low}, {scorer.high}]")
        binary = not is_binary(scorer) or score.value in {0, 1}
        require(binary, f"returns {score.value}, and says that its values are 0 or 1")
    is_text = isinstance(score.explanation, str)
    require(is_text, f"explains itself with {score.explanation!r}, expected text")
    explained = len(score.explanation.splitlines()) == 1 and bool(score.explanation.strip())
    require(explained, f"explains itself with {score.explanation!r}, expected one line")
    is_mapping = isinstance(score.details, Mapping)
    require(is_mapping, f"has the details {score.details!r}, expected a mapping")
    try:
        json.dumps(score.details, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _ViolationError(f"has details that are not JSON ({error})") from error
