"""Functions and evaluators as scorers: what they receive, what they may return, and what their
options are.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from pathgauge import ExpectedCall, Invocation, ReferenceTurn, Score, Scorer, ToolCall
from pathgauge.scorers.adapters.functions import from_function, scorer_class
from pathgauge.scorers.adapters.inputs import SHAPES
from pathgauge.scorers.authoring.builders import expected_call, invocation, tool_call
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.matching.matchers import Anything
from support.repository import DOCS

EMPTY = Invocation("t", "s", "test")
ASKED = invocation(
    ToolCall("search", {"q": "tea"}, "c1", '{"hits": 2}', group=0),
    ToolCall("fetch", '{"id": 7}', "c2", error="timeout", group=0),
    ToolCall("noted", "not an object", result="done", agent="writer"),
    user_input="Tea?",
    input_tokens=30,
    output_tokens=12,
)
TURN = ReferenceTurn(
    "Tea?",
    (
        expected_call("search", q="tea"),
        ExpectedCall("fetch"),
        expected_call("noted", by=Anything()),
    ),
    "Green tea.",
    response_contains=("tea", "green"),
    expected_agent="writer",
    escalate=False,
)


class Reason(NamedTuple):
    """As the reason of an evaluation in pydantic-evals."""

    value: Any
    reason: str | None


@dataclass
class Mentions:
    """Whether the output has a word."""

    word: str
    times: int = 1
    but_not: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.word:
            raise ValueError("word is empty")

    def evaluate(self, ctx: Any) -> bool:
        return ctx.output.count(self.word) >= self.times and not any(
            word in ctx.output for word in self.but_not
        )


def returning(value: Any) -> Scorer:
    def check(invocation: Invocation) -> Any:
        return value

    return from_function(check)


def reading(
    read: Callable[[Any], Any], shape: str
) -> Callable[[Invocation, ReferenceTurn | None], Any]:
    """What `read` finds in a shape, or the reason why there is nothing."""
    seen: list[Any] = []

    def check(found: Any) -> bool:
        seen.append(read(found))
        return True

    def run(actual: Invocation, expected: ReferenceTurn | None) -> Any:
        seen.clear()
        score = from_function(check, takes=[shape]).score(actual, expected)
        return seen[0] if seen else score.reason

    return run


def test_an_instance_is_a_row_of_vertex() -> None:
    assert reading(dict, "instance")(ASKED, TURN) == {
        "prompt": "Tea?",
        "response": "done",
        "predicted_trajectory": [
            {"tool_name": "search", "tool_input": {"q": "tea"}},
            {"tool_name": "fetch", "tool_input": {"id": 7}},
            {"tool_name": "noted", "tool_input": "not an object"},
        ],
        "latency_in_seconds": 1.5,
        "failure": 0,
        "reference": "Green tea.",
        "reference_trajectory": [
            {"tool_name": "search", "tool_input": {"q": "tea"}},
            {"tool_name": "fetch"},
            {"tool_name": "noted", "tool_input": {"by": {"$any": True}}},
        ],
    }


def test_a_result_is_what_an_agent_returned() -> None:
    search = {
        "id": "c1",
        "name": "search",
        "args": {"q": "tea"},
        "result": {"hits": 2},
        "error": None,
        "agent": None,
    }
    fetch = {
        "id": "c2",
        "name": "fetch",
        "args": {"id": 7},
        "result": {"error": "timeout"},
        "error": "timeout",
        "agent": None,
    }
    noted = {
        "id": None,
        "name": "noted",
        "args": "not an object",
        "result": "done",
        "error": None,
        "agent": "writer",
    }
    assert reading(dict, "result")(ASKED, None) == {
        "messages": [
            {"role": "user", "content": "Tea?"},
            {"role": "assistant", "content": "", "tool_calls": [search, fetch]},
            {"role": "tool", "name": "search", "tool_call_id": "c1", "content": {"hits": 2}},
            {
                "role": "tool",
                "name": "fetch",
                "tool_call_id": "c2",
                "content": {"error": "timeout"},
            },
            {"role": "assistant", "content": "", "tool_calls": [noted]},
            {"role": "tool", "name": "noted", "tool_call_id": None, "content": "done"},
            {"role": "assistant", "content": "done"},
        ],
        "tool_calls": [search, fetch, noted],
        "all_tool_calls": [search, fetch, noted],
        "final_response": "done",
        "metrics": {
            "input_tokens": 30,
            "output_tokens": 12,
            "total_tokens": 42,
            "latency": 1.5,
            "tool_calls": 3,
        },
        "agent": "agent",
        "error": None,
    }


def test_calls_of_no_group_are_messages_of_their_own() -> None:
    roles = reading(lambda result: [message["role"] for message in result["messages"]], "result")
    assert roles(invocation(tool_call("a"), tool_call("a")), None) == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]


@pytest.mark.parametrize(
    ("actual", "error"),
    [
        (invocation(), None),
        (invocation(error=True), "error"),
        (invocation(error=True, error_type="Timeout"), "Timeout"),
    ],
)
def test_a_result_tells_how_the_run_failed(actual: Invocation, error: str | None) -> None:
    assert reading(lambda result: result["error"], "result")(actual, None) == error


def test_a_scenario_is_what_the_reference_turn_says() -> None:
    assert reading(dict, "scenario")(EMPTY, TURN) == {
        "input": "Tea?",
        "expected_tools": ["search", "fetch", "noted"],
        "expected_response": "Green tea.",
        "success_criteria": [{"response_contains": ["tea", "green"]}],
        "should_escalate": False,
        "expected_subagent": "writer",
    }
    assert reading(dict, "scenario")(EMPTY, ReferenceTurn()) == {"expected_subagent": None}
    assert reading(list, "scenarios")(EMPTY, ReferenceTurn()) == [{"expected_subagent": None}]
    assert reading(len, "results")(EMPTY, None) == 1


def test_a_context_is_that_of_pydantic_evals() -> None:
    seen = reading(
        lambda ctx: (
            ctx.name,
            ctx.inputs,
            ctx.output,
            ctx.expected_output,
            ctx.duration,
            ctx.metrics["total_tokens"],
        ),
        "ctx",
    )
    assert seen(ASKED, TURN) == ("scenario", "Tea?", "done", "Green tea.", 1.5, 42)
    assert reading(lambda ctx: (ctx.expected_output, ctx.metadata), "ctx")(ASKED, None) == (
        None,
        None,
    )
    assert reading(lambda ctx: ctx.metadata["expected_tools"], "ctx")(ASKED, TURN) == [
        "search",
        "fetch",
        "noted",
    ]
    assert reading(lambda ctx: len(ctx.attributes["tool_calls"]), "ctx")(ASKED, TURN) == 3


def test_invocation_and_turn_are_passed_as_they_are() -> None:
    def check(invocation: Invocation, turn: ReferenceTurn) -> bool:
        return invocation is ASKED and turn is TURN

    assert from_function(check).score(ASKED, TURN).value == 1.0


@pytest.mark.parametrize(
    ("shape", "read", "reason"),
    [
        ("instance", lambda instance: instance["prompt"], "not_applicable"),
        ("instance", lambda instance: instance["response"], "response_not_recorded"),
        ("instance", lambda instance: instance.get("response", ""), "response_not_recorded"),
        ("instance", lambda instance: instance["latency_in_seconds"], "duration_not_recorded"),
        ("instance", lambda instance: instance["reference"], "no_reference"),
        ("instance", lambda instance: instance["reference_trajectory"], "no_reference"),
        ("result", lambda result: result["final_response"], "response_not_recorded"),
        ("result", lambda result: result["messages"][0]["content"], "not_applicable"),
        ("result", lambda result: result["messages"][-1]["content"], "response_not_recorded"),
        ("result", lambda result: result["metrics"]["total_tokens"], "tokens_not_recorded"),
        ("result", lambda result: result["metrics"].get("input_tokens", 0), "tokens_not_recorded"),
        ("result", lambda result: result["metrics"]["latency"], "duration_not_recorded"),
        ("result", lambda result: result.get("tool_calls_after_approval", []), "not_applicable"),
        ("ctx", lambda ctx: ctx.output, "response_not_recorded"),
        ("ctx", lambda ctx: ctx.inputs, "not_applicable"),
        ("ctx", lambda ctx: ctx.duration, "duration_not_recorded"),
    ],
)
def test_reading_what_is_not_known_is_no_value(
    shape: str, read: Callable[[Any], Any], reason: str
) -> None:
    assert reading(read, shape)(EMPTY, None) == reason


@pytest.mark.parametrize(
    ("shape", "read", "reason"),
    [
        ("instance", lambda instance: instance["predicted_trajectory"], "tools_not_recorded"),
        ("result", lambda result: result["tool_calls"], "tools_not_recorded"),
        ("result", lambda result: result["all_tool_calls"], "tools_not_recorded"),
        ("result", lambda result: result["messages"], "tools_not_recorded"),
        ("result", lambda result: result["metrics"]["tool_calls"], "tools_not_recorded"),
    ],
)
def test_calls_that_may_be_missing_are_not_known(
    shape: str, read: Callable[[Any], Any], reason: str
) -> None:
    for flag in ("no_tool_spans", "dropped_spans"):
        assert (
            reading(read, shape)(invocation(tool_call("search"), flags=frozenset({flag})), TURN)
            == reason
        )


@pytest.mark.parametrize(
    ("shape", "read", "reason"),
    [
        (
            "instance",
            lambda instance: instance["predicted_trajectory"][0]["tool_input"],
            "args_not_recorded",
        ),
        (
            "instance",
            lambda instance: instance["reference_trajectory"][0]["tool_input"],
            "no_reference",
        ),
        ("result", lambda result: result["tool_calls"][0]["args"], "args_not_recorded"),
        (
            "result",
            lambda result: result["tool_calls"][0].get("result", {}),
            "results_not_recorded",
        ),
        ("result", lambda result: result["messages"][2]["content"], "results_not_recorded"),
    ],
)
def test_arguments_and_results_that_were_not_recorded_are_not_known(
    shape: str, read: Callable[[Any], Any], reason: str
) -> None:
    assert (
        reading(read, shape)(
            invocation(ToolCall("search")), ReferenceTurn(tool_calls=(ExpectedCall("search"),))
        )
        == reason
    )


def test_comparing_what_is_not_known_is_no_value_unless_something_known_differs() -> None:
    def exact(instance: dict[str, Any]) -> float:
        return float(instance["predicted_trajectory"] == instance["reference_trajectory"])

    scorer, expected = from_function(exact), ReferenceTurn(tool_calls=(expected_call("a", x=1),))
    scores = [
        scorer.score(invocation(call), expected)
        for call in (tool_call("a", x=1), tool_call("a", x=2), ToolCall("a"), ToolCall("b"))
    ]
    assert [score.value if score.reason is None else score.reason for score in scores] == [
        1.0,
        0.0,
        "args_not_recorded",
        0.0,
    ]
    assert (
        scorer.score(
            invocation(tool_call("a")), ReferenceTurn(tool_calls=(ExpectedCall("a"),))
        ).reason
        == "no_reference"
    )
    assert scorer.score(invocation(), expected).value == 0.0


@pytest.mark.parametrize("result", ["plain", "{broken", '"text in quotes"', "3", "[" * 100_000])
def test_text_that_is_no_object_stays_as_it_is(result: str) -> None:
    call = ToolCall("a", result, result=result)
    assert reading(lambda found: found["tool_calls"][0], "result")(invocation(call), None) == {
        "id": None, "name": "a", "args": result, "result": result, "error": None, "agent": None
    }  # fmt: skip


@pytest.mark.parametrize("result", ['{"hits": [1]}', '"{\\"hits\\": [1]}"', {"hits": [1]}])
def test_json_text_is_opened_though_it_is_encoded_twice(result: Any) -> None:
    assert reading(lambda found: found["tool_calls"][0]["result"], "result")(
        invocation(ToolCall("a", result=result)), None
    ) == {"hits": [1]}


def test_what_does_not_exist_at_all_is_the_mistake_of_the_check() -> None:
    with pytest.raises(KeyError, match="anwser"):
        reading(lambda result: result["anwser"], "result")(ASKED, None)
    with pytest.raises(AttributeError, match="the context has no 'span_tree'"):
        reading(lambda ctx: ctx.span_tree, "ctx")(ASKED, None)
    assert reading(lambda result: result.get("anwser", 3), "result")(ASKED, None) == 3


@pytest.mark.parametrize(
    ("returned", "score"),
    [
        (True, Score(1.0, None, "returned True")),
        (False, Score(0.0, None, "returned False")),
        (0.25, Score(0.25, None, "returned 0.25")),
        (7, Score(7.0, None, "returned 7")),
        (Fraction(1, 4), Score(0.25, None, "returned 1/4")),
        (None, Score(None, "not_applicable", "nothing to judge")),
        ((True, "two\nlines"), Score(1.0, None, "two lines")),
        ((None, "no tools"), Score(None, "not_applicable", "no tools")),
        (Reason(0.5, "half"), Score(0.5, None, "half")),
        (SimpleNamespace(value=False, reason=None), Score(0.0, None, "returned False")),
        ({"check": 0.5}, Score(0.5, None, "returned 0.5", {"check": 0.5})),
        ({"check": 0.5, "other": 1}, Score(0.5, None, "returned 0.5", {"check": 0.5, "other": 1})),
        (
            {"score": 1, "comment": "fine"},
            Score(1.0, None, "fine", {"score": 1, "comment": "fine"}),
        ),
        (
            {"passed": False, "scores": {"a": 1}},
            Score(0.0, None, "returned False", {"passed": False, "scores": {"a": 1}}),
        ),
        (
            {"score": 0.5, "passed": True},
            Score(0.5, None, "returned 0.5", {"score": 0.5, "passed": True}),
        ),
        (
            {"score": 0.5, "precision": 1},
            Score(0.5, None, "returned 0.5", {"score": 0.5, "precision": 1}),
        ),
        (
            {"passed": True, "f1": 0.5},
            Score(0.5, None, "returned 0.5", {"passed": True, "f1": 0.5}),
        ),
        ({"check": Reason(1, "good")}, Score(1.0, None, "good", {"check": [1, "good"]})),
        (
            {"check": None, "reason": "no tools"},
            Score(None, "not_applicable", "no tools", {"check": None, "reason": "no tools"}),
        ),
        ({"check": 1, "seen": {"a", "b"}}, Score(1.0, None, "returned 1")),
        ({}, Score(None, "not_applicable", "nothing to judge")),
        (Score(0.5, None, "mine", {"a": 1}), Score(0.5, None, "mine", {"a": 1})),
    ],
)
def test_a_check_may_return_what_such_checks_return(returned: Any, score: Score) -> None:
    assert returning(returned).score(EMPTY, None) == score


def test_a_value_that_is_no_number_is_left_to_the_evaluator() -> None:
    value = returning(math.nan).score(EMPTY, None).value
    assert value is not None
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("good", "returned str, expected a number"),
        ([1], "returned list, expected a number"),
        ({"check": "good"}, "returned str, expected a number"),
        (
            {"precision": 0.5, "recall": 1},
            "returned a dictionary of precision, recall, expected one number, or one called check",
        ),
        ({"label": "good"}, "returned a dictionary of label, expected one number"),
    ],
)
def test_what_is_no_score_is_an_error(returned: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        returning(returned).score(EMPTY, None)


def test_a_dictionary_may_use_the_name_of_the_function_or_of_the_scorer() -> None:
    def check(instance: Any) -> Any:
        return {"precision": 0.5, "recall": 1, "check": 0.25}

    assert from_function(check, name="recall").score(EMPTY, None).value == 1.0
    assert from_function(check, name="other").score(EMPTY, None).value == 0.25


def test_an_evaluator_is_scored_as_a_class_with_options_or_as_an_object() -> None:
    answered = invocation(final_response="tea and tea")
    assert from_function(Mentions, word="tea", times=2).score(answered, None).value == 1.0
    assert from_function(Mentions, word="tea", but_not=["and"]).score(answered, None).value == 0.0
    assert from_function(Mentions("tea", 3)).score(answered, None).value == 0.0
    assert [from_function(Mentions, word="tea").name, from_function(Mentions("tea")).name] == [
        "mentions",
        "mentions",
    ]
    check_scorer(from_function(Mentions, word="tea"))


def test_an_evaluator_that_refuses_its_options_is_refused_at_the_start() -> None:
    class Exits:
        def __init__(self) -> None:
            raise SystemExit(3)

        def evaluate(self, result: object) -> bool:
            return True

    with pytest.raises(ValueError, match=r"^ValueError: word is empty$"):
        from_function(Mentions, word="")
    with pytest.raises(ValueError, match=r"^SystemExit: 3$"):
        from_function(Exits)


def test_options_are_given_anew_for_every_score() -> None:
    def check(invocation: Invocation, words: list[str] = ["a"]) -> int:  # noqa: B006 - as people write it
        words.append("b")
        return len(words)

    for scorer in (from_function(check), from_function(check, words=["x"])):
        assert [scorer.score(EMPTY, None).value for _ in range(2)] == [2.0, 2.0]


def test_range_and_direction_are_those_of_the_check() -> None:
    def check(invocation: Invocation) -> int:
        return 7

    scorer = from_function(check, name="seven", low=-1, high=math.inf, higher_is_better=False)
    assert (scorer.name, scorer.low, scorer.high, scorer.higher_is_better) == (
        "seven",
        -1,
        math.inf,
        False,
    )
    check_scorer(scorer)
    for low, high in ((1, 1), (2, 1), (-math.inf, 1), (0, math.nan)):
        with pytest.raises(ValueError, match="expected more than low"):
            from_function(check, low=low, high=high)


def test_scorers_with_the_same_options_are_equal() -> None:
    def check(invocation: Invocation, words: Any = ()) -> bool:
        return True

    def twin(invocation: Invocation, words: Any = ()) -> bool:
        return True

    assert from_function(check, words=["a"]) == from_function(check, words=["a"])
    assert hash(from_function(check, words=["a"])) == hash(from_function(check, words=["a"]))
    assert from_function(check, words=["a"]) != from_function(check, words=["b"])
    assert from_function(check) != from_function(twin)
    assert from_function(check) != object()


def needing(**parameters: Any) -> tuple[bool, str | None]:
    """Whether a check needs a reference, and what its score says without one."""
    functions: dict[str, Callable[..., bool]] = {
        "turn": lambda invocation, turn: True,
        "maybe": lambda invocation, turn=None: turn is None,
        "scenario": lambda result, scenario: "a" in scenario,
        "both": lambda turn, scenario: True,
        "instance": lambda instance: True,
    }
    scorer = from_function(functions[parameters.pop("of")], **parameters)
    return scorer.needs_reference, scorer.score(EMPTY, None).reason


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"of": "turn"}, (True, "no_reference")),
        ({"of": "maybe"}, (False, None)),
        ({"of": "scenario"}, (True, "no_reference")),
        ({"of": "scenario", "scenario": {"a": 1}}, (False, None)),
        ({"of": "scenario", "scenario": {}}, (False, None)),
        ({"of": "scenario", "scenario": None}, (True, "no_reference")),
        ({"of": "both", "scenario": {"a": 1}}, (True, "no_reference")),
        ({"of": "instance"}, (False, None)),
    ],
)
def test_a_check_needs_a_reference_when_it_takes_a_turn_or_a_scenario_that_is_not_written(
    parameters: Any, expected: Any
) -> None:
    assert needing(**parameters) == expected


def test_entries_of_the_scenario_lie_over_the_reference() -> None:
    def check(result: Any, scenario: Any) -> bool:
        scenario["seen"].append(1)
        return bool(
            scenario["expected_tools"] == ["x"]
            and scenario["input"] == "Tea?"
            and len(scenario["seen"]) == 1
        )

    scorer = from_function(check, scenario={"expected_tools": ["x"], "seen": []})
    assert [scorer.score(EMPTY, TURN).value for _ in range(2)] == [1.0, 1.0]


def test_takes_says_what_parameters_with_other_names_receive() -> None:
    def check(output: Any, test: Any, limit: int = 3) -> bool:
        return len(output["tool_calls"]) == limit and test["expected_subagent"] == "writer"

    assert from_function(check, takes=["result", "scenario"]).score(ASKED, TURN).value == 1.0
    assert (
        from_function(check, takes=["result", "scenario"], limit=2).score(ASKED, TURN).value == 0.0
    )


def test_the_guide_names_all_that_a_parameter_can_receive() -> None:
    guide = (DOCS / "adding-a-scorer.md").read_text()
    assert [shape for shape in SHAPES if f"`{shape}`" not in guide] == []


def unnamed(x: Any, y: Any) -> bool:
    return True


def misnamed(instance: Any, name: str) -> bool:
    return True


def positional(instance: Any, n: int, /) -> bool:
    return True


async def waiting(instance: Any) -> bool:
    return True


class Waiting:
    async def evaluate(self, ctx: Any) -> bool:
        return True


@pytest.mark.parametrize(
    ("found", "takes", "message"),
    [
        (
            unnamed,
            [],
            (
                rf"^found the parameters \(x, y\), expected one called {', '.join(SHAPES)}, or"
                r" the option takes with what they receive$"
            ),
        ),
        (unnamed, ["row"], f"^takes: found 'row', expected one of {', '.join(SHAPES)}$"),
        (
            unnamed,
            ["result"] * 3,
            "^takes: found 3 shapes, expected at most 2, one for each parameter$",
        ),
        (
            misnamed,
            [],
            (
                "^found the parameter 'name' without a default, expected another name, because no"
                " option can have this one$"
            ),
        ),
        (positional, [], r"^found the parameters \(\), expected one called"),
        (
            waiting,
            [],
            (
                "^found async def, expected def: a scorer runs while traffic waits, so it must not"
                " wait$"
            ),
        ),
        (Waiting, [], "^found async def"),
        (Waiting(), [], "^found async def"),
        (object, [], "^found NoneType, expected a function, or a class with a method evaluate$"),
        ("text", [], "^found str, expected a function, or a class with a method evaluate$"),
    ],
)
def test_what_cannot_be_called_is_refused(found: Any, takes: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scorer_class(found, takes)


def test_an_option_with_a_name_of_all_scorers_keeps_its_default() -> None:
    def check(
        instance: Any, threshold: int = 5, _cache: Any = None, *rest: Any, **others: Any
    ) -> bool:
        return threshold == 5

    assert from_function(check).score(EMPTY, None).value == 1.0
    with pytest.raises(TypeError, match="unexpected keyword argument 'threshold'"):
        from_function(check, threshold=3)


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (lambda instance: True, "lambda"),
        (functools.partial(unnamed, y=1), "partial"),
        (Mentions, "mentions"),
        (type("URLIs_Good2", (Mentions,), {}), "urlis_good2"),
        (type("名前", (Mentions,), {}), "check"),
    ],
)
def test_a_scorer_is_called_like_its_function(found: Any, name: str) -> None:
    assert scorer_class(found, ["result"] if name == "partial" else []).name == name
