"""Special cases of browser-use that the captures do not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.browser_use import (
    bare_message,
    unwrap_arguments,
    unwrap_result,
)
from pathgauge.collector.core.invocations.messages.message import AskedCall, Message
from pathgauge.collector.core.invocations.messages.written_results import Result

CLICK = {"click": {"index": 5}}
RESULT = {"is_done": False, "extracted_content": None, "long_term_memory": "m", "error": None}


def reply(*actions: Any, **more: Any) -> Message:
    return Message("assistant", json.dumps({"memory": "m", "action": actions} | more))


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("<user_request>\nWhere?\n</user_request>\n\n<browser_state>...", "Where?"),
        (
            "<user_request>\n<initial_user_request>One</initial_user_request>\n"
            "<follow_up_user_request> Two </follow_up_user_request>\n"
            "<follow_up_user_request> Three </follow_up_user_request>\n</user_request>\n",
            "Three",
        ),
        ("<user_request>\nWhere?", "<user_request>\nWhere?"),
        ("Where?", "Where?"),
    ],
)
def test_of_a_prompt_only_the_task_is_kept(text: str, task: str) -> None:
    assert bare_message(Message("user", text)).text == task


def test_the_actions_of_a_reply_are_calls_and_the_last_one_is_the_answer() -> None:
    found = bare_message(reply(CLICK, {"done": {"text": "Yes."}}))
    assert (found.text, found.calls) == ("Yes.", (AskedCall("click", {"index": 5}),))


def test_without_an_answer_a_reply_has_calls_only() -> None:
    found = bare_message(reply(CLICK, {"go_back": None}))
    expected = (AskedCall("click", {"index": 5}), AskedCall("go_back", {}))
    assert (found.text, found.calls) == (None, expected)


@pytest.mark.parametrize(
    "message",
    [
        reply("click"),
        reply({"click": 5}),
        reply(CLICK | {"scroll": {}}),
        reply(CLICK, verdict="fine"),
        Message("assistant", "{not JSON"),
        Message("assistant", None),
    ],
)
def test_other_messages_stay_as_they_are(message: Message) -> None:
    assert bare_message(message) == message


@pytest.mark.parametrize(
    ("written", "bare"),
    [
        ({"action": "click", "params": {"index": 5}}, {"index": 5}),
        ({"action": "click"}, {"action": "click"}),
        ("click", "click"),
    ],
)
def test_arguments_are_the_parameters_of_an_action(written: Any, bare: Any) -> None:
    assert unwrap_arguments(written) == bare


@pytest.mark.parametrize(
    ("written", "result"),
    [
        (RESULT, Result(None)),
        (RESULT | {"extracted_content": "Clicked."}, Result("Clicked.")),
        (RESULT | {"error": "gone"}, Result(None, "gone")),
        ({"error": "gone"}, Result({"error": "gone"})),
    ],
)
def test_a_result_is_its_content_and_its_error(written: Any, result: Result) -> None:
    assert unwrap_result(written) == result
