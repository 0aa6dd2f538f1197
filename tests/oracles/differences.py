"""Where pathgauge means to differ from an oracle: a scoring comes in, the scoring that the oracle
does instead goes out.

So the differences say exactly what the oracle gives, not only that something else is to be
expected.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from operator import itemgetter
from typing import TypeAlias

from .cases import LONG_WORDS, Call, Case, Json

Scoring: TypeAlias = Callable[[Case], float | None]
"""A case comes in, its score goes out."""


@dataclass(frozen=True)
class Difference:
    """One difference and its reason."""

    name: str
    why: str
    oracle: Callable[[Scoring], Scoring]


def rewritten(
    rewrite: Callable[[Case], Case],
) -> Callable[[Scoring], Scoring]:
    """The scoring of a case that is written as the oracle reads it."""

    def changed(scoring: Scoring) -> Scoring:
        return lambda case: scoring(rewrite(case))

    return changed


def _calls(change: Callable[[Call], Call]) -> Callable[[Scoring], Scoring]:
    return rewritten(
        lambda case: {
            **case,
            **{side: [change(call) for call in case[side]] for side in ("actual", "expected")},
        }
    )


def _arguments(change: Callable[[Json], Json]) -> Callable[[Scoring], Scoring]:
    return _calls(lambda call: [call[0], _deep(call[1], change)])


def _deep(value: Json, change: Callable[[Json], Json]) -> Json:
    if isinstance(value, dict):
        return {key: _deep(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_deep(item, change) for item in value]
    return change(value)


_serial = count()

BOOLEANS = Difference(
    "booleans are numbers",
    "Python says True == 1; JSON has two types, and an agent that sends the wrong one gets an error"
    " from most tools.",
    _arguments(lambda value: int(value) if isinstance(value, bool) else value),
)
NANS = Difference(
    "NaN differs from NaN",
    "As floating-point numbers, yes; two calls that both sent NaN are the same call all the same.",
    _arguments(
        lambda value: (
            f"NaN {next(_serial)}" if isinstance(value, float) and math.isnan(value) else value
        )
    ),
)
NO_ARGUMENTS = Difference(
    "no arguments at all are a value of their own",
    "ADK takes them for what was recorded, or asked for; here they were not recorded, or do not"
    " matter.",
    _calls(lambda call: [call[0], {"": "none at all"} if call[1] is None else call[1]]),
)
BLANKS = Difference(
    "blanks belong to the name of a tool",
    "Instrumentations and people leave some around it; no two tools differ by them alone.",
    _calls(lambda call: [call[0].replace(" ", "_").replace("\t", "__"), call[1]]),
)
NULLS = Difference(
    "null is a missing value",
    "For keys that alone are compared; elsewhere LangChain, too, tells an argument that is null"
    " from one that was not given.",
    _calls(lambda call: [call[0], _without_nulls(call[1])] if call[0] == "a" else call),
)
DIRECT_NANS = Difference(
    "NaN differs from NaN unless it stands inside of a list or object",
    "So Python has it for NaNs that are one object, as those from one JSON decoder are.",
    _calls(lambda call: [call[0], _without_direct_nans(call[1])]),
)
DIRECT_NANS_OF_KEYS = Difference(
    "NaN differs from NaN under keys that alone are compared",
    DIRECT_NANS.why,
    _calls(lambda call: [call[0], _without_direct_nans(call[1])] if call[0] == "a" else call),
)
MESSAGES = Difference(
    "calls have to be in as many messages as expected",
    "A model that asks for two calls at once, or one after the other, did the same.",
    lambda scoring: (
        lambda case: scoring(case) if _sizes(case["messages"]) == _sizes(case["groups"]) else 0.0
    ),
)
FIRST_FIT = Difference(
    "each expected call takes the first call that answers it",
    "Then another that it alone could answer may be left without: the verdict depends on the order"
    " of parallel calls.",
    lambda scoring: lambda case: _first_fit(scoring, case["actual"], case["expected"]),
)
FIRST_FIT_OF_ACTUAL = Difference(
    "each call takes the first expected call that it answers",
    FIRST_FIT.why,
    lambda scoring: lambda case: _first_fit(_turned(scoring), case["expected"], case["actual"]),
)
FIRST_FIT_IN_MESSAGES = Difference(
    "each call takes the first expected call of its message that it answers",
    FIRST_FIT.why,
    lambda scoring: lambda case: _first_fit_in_messages(scoring, case),
)


def instead(name: str, why: str, *scorings: Scoring) -> Difference:
    """A difference for which no reading of the case, but another scoring stands; of several, all
    have to agree.
    """
    return Difference(
        name, why, lambda _: lambda case: min(scoring(case) or 0.0 for scoring in scorings)
    )


def _without_nulls(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(item) for key, item in value.items() if item is not None}


def _without_direct_nans(arguments: Json) -> Json:
    return {
        key: f"NaN {next(_serial)}" if isinstance(value, float) and math.isnan(value) else value
        for key, value in arguments.items()
    }


def _sizes(numbers: Sequence[int]) -> list[int]:
    return list(Counter(numbers).values())


def _turned(scoring: Scoring) -> Scoring:
    return lambda case: scoring({"actual": case["expected"], "expected": case["actual"]})


def _first_fit(scoring: Scoring, takers: Sequence[Call], expected: Sequence[Call]) -> float:
    """Whether each expected call gets a taker of its own; what answers what, the scoring of one
    call against one says.
    """
    free = list(range(len(takers)))
    for call in expected:
        fit = next(
            (place for place in free if scoring({"actual": [takers[place]], "expected": [call]})),
            None,
        )
        if fit is None:
            return 0.0
        free.remove(fit)
    return 1.0


def _first_fit_in_messages(scoring: Scoring, case: Case) -> float | None:
    if _sizes(case["messages"]) != _sizes(case["groups"]):
        return scoring(case)
    actual, expected = (
        _split(case["actual"], case["messages"]),
        _split(case["expected"], case["groups"]),
    )
    return min(
        (
            _first_fit(_turned(scoring), others, some)
            for some, others in zip(actual, expected, strict=True)
        ),
        default=1.0,
    )


def _split(calls: Sequence[Call], messages: Sequence[int]) -> list[list[Call]]:
    together = groupby(zip(messages, calls, strict=True), key=itemgetter(0))
    return [[call for _, call in same] for _, same in together]


BLANK_REFERENCE = Difference(
    "a blank reference is met by no response",
    "Here it is no reference, so that there is no score.",
    lambda scoring: lambda case: scoring(case) if case["reference"].strip() else 0.0,
)
NO_WORDS = Difference(
    "a reference of signs alone is met by no response",
    "Without words there is nothing to count; here such texts are compared as they stand, so that"
    " an emoji can be the right answer.",
    lambda scoring: (
        lambda case: (
            scoring(case)
            if any(map(str.isalnum, case["reference"])) or not case["reference"].strip()
            else 0.0
        )
    ),
)
ONE_WORD = Difference(
    "a reference of one word is met by no response",
    "It has no pair of words to count; here it is compared as it stands.",
    lambda scoring: (
        lambda case: (
            scoring(case) if len(re.findall("[A-Za-z0-9]+", case["reference"])) != 1 else 0.0
        )
    ),
)
STEMS = Difference(
    "words of any length have a stem",
    "Runs of more than 32 letters and digits are identifiers.",
    rewritten(
        lambda case: {
            side: re.sub("|".join(reversed(LONG_WORDS)), "word", text)
            for side, text in case.items()
        }
    ),
)

# What judges say. A score of -1 stands for none; samples are lost, or cannot be read, for labels
# and ratings alike.


def _answers(case: Case, *others: str) -> Case:
    kept = [index for index, label in enumerate(case["labels"]) if label not in others]
    return {
        **case,
        **{kind: [case[kind][index] for index in kept] for kind in ("labels", "ratings")},
    }


def _tied(labels: Sequence[str]) -> bool:
    good, bad = (
        sum(label in words for label in labels) for words in (("valid", "yes"), ("invalid", "no"))
    )
    return good == bad > 0


def _rubric(case: Case, number: int) -> Case:
    """One rubric alone; those that say that it does not apply have no vote, unless all do."""
    verdicts = [rating if isinstance(rating, str) else rating[number] for rating in case["ratings"]]
    if {"yes", "no"} & {*verdicts}:
        verdicts = [verdict for verdict in verdicts if verdict != "not_applicable"]
    ratings = [
        [verdict] if verdict in {"yes", "no", "not_applicable"} else verdict for verdict in verdicts
    ]
    return {"labels": verdicts, "rubrics": 1, "ratings": ratings}


def _mean_of_rubrics(scoring: Scoring, case: Case) -> float:
    scores = [
        score
        for number in range(case["rubrics"])
        if (score := scoring(_rubric(case, number))) is not None and score >= 0
    ]
    return sum(scores) / len(scores) if scores else -1.0


TIES = Difference(
    "a tie is a no",
    "Half of the samples say yes: nothing is known of what was judged, least of all that it is"
    " bad.",
    lambda scoring: lambda case: 0.0 if _tied(case["labels"]) else scoring(case),
)
UNREADABLE = Difference(
    "a sample that cannot be read is no sample",
    "Then a single answer may decide for five; here such a sample withholds its vote.",
    rewritten(lambda case: _answers(case, "junk")),
)
FAILURES = Difference(
    "one sample that failed leaves the invocation without a score",
    "However many answers there are; here it withholds its vote, as any other that is no answer.",
    lambda scoring: lambda case: -1.0 if "failed" in case["labels"] else scoring(case),
)
FEW_ANSWERS = Difference(
    "the share is that of the answers, however few",
    "One answer of seven is not the opinion of seven; here more than half have to answer.",
    rewritten(lambda case: _answers(case, "junk", "failed")),
)
RUBRICS_ALONE = Difference(
    "each rubric has its own votes, and the mean is that of those with some",
    "Here a rubric does not apply if the majority says so, and a mean without the rubrics that are"
    " in dispute would flatter.",
    lambda scoring: lambda case: _mean_of_rubrics(scoring, case),
)
