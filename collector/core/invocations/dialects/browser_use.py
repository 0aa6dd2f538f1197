"""browser-use, which is traced by Laminar: what is around its task, actions and results.

A prompt has the task between tags, before the state of the browser. A reply is the JSON of what the
model thinks and of the actions that it takes, of which `done` has the answer. The span of an action
has its name beside the parameters, and the whole `ActionResult` as output.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.messages.message import AskedCall, Message
from pathgauge.collector.core.invocations.messages.values import as_id, as_text, decoded
from pathgauge.collector.core.invocations.messages.written_results import Result

RUN, FINAL_ACTION = "agent.run", "done"

_TASK, _END = "<user_request>\n", "\n</user_request>"
_FOLLOW_UP, _FOLLOW_UP_END = "<follow_up_user_request>", "</follow_up_user_request>"
_REPLY = frozenset(
    {"thinking", "evaluation_previous_goal", "memory", "next_goal", "action"}
    | {"current_plan_item", "plan_update"}
)
_RESULT = frozenset({"is_done", "extracted_content", "long_term_memory", "error"})


def bare_message(message: Message) -> Message:
    """A message with only the task of a prompt, or with the actions of a reply as calls. Others are
    returned unchanged.
    """
    text = message.text or ""
    if text.startswith(_TASK) and _END in text:
        return message._replace(text=_task(text))
    if not text.startswith("{"):
        return message
    actions = _actions(decoded(text))
    if actions is None:
        return message
    answer = None
    calls = []
    for name, parameters in actions:
        if name == FINAL_ACTION:
            answer = as_text(parameters.get("text"))
        else:
            calls.append(AskedCall(name, parameters))
    return message._replace(text=answer, calls=(*message.calls, *calls), hidden=answer is None)


def _task(text: str) -> str:
    """The task, of which the last follow-up is what the user asked now."""
    task = text[len(_TASK) : text.index(_END)]
    if _FOLLOW_UP in task:
        task = task.rpartition(_FOLLOW_UP)[2].partition(_FOLLOW_UP_END)[0]
    return task.strip()


def _actions(reply: Any) -> list[tuple[str, dict[str, Any]]] | None:
    """The actions of a reply with their parameters; `None` if this is no reply of browser-use."""
    if not isinstance(reply, dict) or not _REPLY.issuperset(reply):
        return None
    actions = reply.get("action")
    if not isinstance(actions, list) or not all(_is_action(one) for one in actions):
        return None
    return [(name, parameters or {}) for one in actions for name, parameters in one.items()]


def _is_action(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    [parameters] = value.values()
    return parameters is None or isinstance(parameters, dict)


def unwrap_arguments(value: Any) -> Any:
    """The parameters of an action, without its name."""
    if isinstance(value, dict) and value.keys() == {"action", "params"}:
        return value["params"]
    return value


def unwrap_result(value: Any) -> Result:
    """The content of the result of an action, and its error."""
    if isinstance(value, dict) and _RESULT.issubset(value):
        return Result(decoded(value["extracted_content"]), as_id(value["error"]))
    return Result(value)
