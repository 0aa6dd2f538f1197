"""Idempotent tools: calls repeated with the same key."""

from typing import Any

import pytest

from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.tool_use.idempotency import Idempotency
from pathgauge.scorers.types import Score, ToolCall

DATA = {"order": 7, "total": 9.5}


def call(key: Any = "k1", /, name: str = "pay", **result: Any) -> ToolCall:
    return ToolCall(
        name, {"idempotency_key": key}, result=result or {"status": "completed", "data": DATA}
    )


AGAIN = call(status="already_processed", data={"total": 9.50, "order": 7.0})
LOSSY = {"flags": frozenset({"no_tool_spans"})}


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param([call(), AGAIN], 1.0, id="the work was done, with the same data"),
        pytest.param([call(), call("k2"), AGAIN, AGAIN], 1.0, id="twice"),
        pytest.param([AGAIN, AGAIN], 1.0, id="done in an earlier turn"),
        pytest.param([call(), call()], 0.0, id="done again"),
        pytest.param([call(), call(status="already_processed", data={})], 0.0, id="other data"),
        pytest.param([call(), call(status="already_processed")], 0.0, id="no data"),
        pytest.param(
            [call(status="ok"), call(status="already_processed")], 1.0, id="no data both times"
        ),
        pytest.param([call(), AGAIN, call()], 0.0, id="done again later"),
        pytest.param([call(), call(name="refund")], "not_applicable", id="another tool"),
        pytest.param([call(), call("k2")], "not_applicable", id="another key"),
        pytest.param([call(1), call(True)], "not_applicable", id="a number and a truth value"),
        pytest.param([call(1), call(1.0)], 0.0, id="the same number"),
        pytest.param([call(""), call("")], "not_applicable", id="empty keys"),
        pytest.param([call(None), call(None)], "not_applicable", id="null keys"),
        pytest.param([call(["k"]), call(["k"])], 0.0, id="a key of any kind"),
        pytest.param([], "not_applicable", id="no calls"),
        pytest.param(
            [call(error="timeout"), call()], "not_applicable", id="a retry after a failure"
        ),
        pytest.param([call(), call(error="timeout"), AGAIN], 1.0, id="a repetition that failed"),
        pytest.param(
            [
                call(),
                ToolCall("pay", '{"idempotency_key": "k1"}', result='{"status": "completed"}'),
            ],
            0.0,
            id="as text",
        ),
        pytest.param(
            [call(), ToolCall("pay ", {"idempotency_key": "k1"}, result="done")],
            0.0,
            id="text that is no object",
        ),
        pytest.param(
            [
                ToolCall("pay", {}, result={"idempotency_key": "k", "n": 1}),
                ToolCall("pay", {}, result={"idempotency_key": "k", "n": 2}),
            ],
            0.0,
            id="the key in the results",
        ),
        pytest.param(
            [ToolCall("pay", result={"idempotency_key": "k1", "data": DATA}), AGAIN],
            1.0,
            id="the key in one result",
        ),
        pytest.param(
            [call(), ToolCall("pay", {"idempotency_key": "k1"})],
            "results_not_recorded",
            id="the repeated result unknown",
        ),
        pytest.param(
            [ToolCall("pay", {"idempotency_key": "k1"}), AGAIN],
            "results_not_recorded",
            id="the first result unknown",
        ),
        pytest.param(
            [ToolCall("pay", {"idempotency_key": "k1"}), call()],
            "results_not_recorded",
            id="done again, unless the first call has failed",
        ),
        pytest.param(
            [ToolCall("pay", {"idempotency_key": "k1"}, result={"error": "busy"}), call()],
            "not_applicable",
            id="the first call has failed",
        ),
        pytest.param(
            [ToolCall("pay", {"idempotency_key": "k1"}), call(), call()],
            0.0,
            id="done again, whatever the first result",
        ),
        pytest.param(
            [ToolCall("pay", {"idempotency_key": "k1"}), call(), AGAIN],
            "results_not_recorded",
            id="done once or twice",
        ),
        pytest.param([ToolCall("pay", result={}), call()], "args_not_recorded", id="a key unknown"),
        pytest.param(
            [ToolCall("pay", result={}), call(name="refund")],
            "not_applicable",
            id="a key unknown, and nothing to share it with",
        ),
        pytest.param(
            [ToolCall("pay", result={}), call(), call()],
            0.0,
            id="a key unknown, and another repeated",
        ),
        pytest.param(
            [ToolCall("pay", "{cut", result={}), call()],
            "not_applicable",
            id="arguments that are no object",
        ),
    ],
)
def test_a_repeated_call_finds_its_work_done(calls: list[ToolCall], expected: float | str) -> None:
    score = Idempotency().score(invocation(*calls), None)
    assert (score.reason or score.value) == expected


def test_the_evidence_is_the_repeated_call() -> None:
    good = Idempotency().score(invocation(call("k2"), call(), AGAIN), None)
    assert good == Score(
        1.0, None, "1 repeated call found the work done", {"repeats": [[2, 1, "pay"]]}
    )
    bad = Idempotency().score(
        invocation(call(), AGAIN, call(), call(status="already_processed", data=1)), None
    )
    line = (
        "pay (call 2) repeats call 0, but was not answered with the status already_processed, and 1"
        " more"
    )
    assert bad == Score(0.0, None, line, {"repeats": [[1, 0, "pay"], [2, 0, "pay"], [3, 0, "pay"]]})
    other = Idempotency().score(invocation(call(), call(status="already_processed", data=1)), None)
    assert other.explanation == "pay (call 1) repeats call 0, but was answered with other data"


def test_work_that_was_seen_done_again_is_certain() -> None:
    assert Idempotency().score(invocation(call(), call(), **LOSSY), None).value == 0.0
    assert (
        Idempotency().score(invocation(call(), AGAIN, **LOSSY), None).reason == "tools_not_recorded"
    )


def test_key_and_status_can_be_chosen() -> None:
    calls = [
        ToolCall("pay", {"request": {"id": 1}}, result={"status": status, "data": 1})
        for status in ("ok", "duplicate")
    ]
    assert Idempotency("request", "duplicate").score(invocation(*calls), None).value == 1.0
    assert Idempotency("request").score(invocation(*calls), None).value == 0.0


def test_data_that_is_nested_too_deep_is_not_compared() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert (
        Idempotency()
        .score(invocation(call(data=deep), call(status="already_processed", data=deep)), None)
        .reason
        == "too_long"
    )


@pytest.mark.parametrize("option", ["key", "status"])
def test_options_are_not_blank(option: str) -> None:
    repeated: Any = invocation(call(), AGAIN), None
    check_scorer(Idempotency(), [repeated])
    check_scorer(Idempotency("q", "done"), [repeated])
    with pytest.raises(ValueError, match=f"{option}: found ' ', expected text that is not blank"):
        Idempotency(**{option: " "})
