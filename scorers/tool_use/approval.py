"""Whether a call that needs human approval is waiting, was rejected, failed or was carried out.

Frameworks and tools report this in many ways: as a `status`, as `approved: false`, or in the text
returned to the model, such as "The user rejected the tool call."
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from pathgauge.scorers.matching.calls import as_object, failed, outcome_known
from pathgauge.scorers.types import Json, ToolCall

ApprovalState = Literal["pending", "rejected", "failed", "done"]

PENDING = "pending_confirmation"
REJECTIONS = (
    "rejected",
    "denied",
    "declined",
    "refused",
    "cancelled",
    "canceled",
    "not approved",
    "not confirmed",
)

_DECISION_FIELDS = ("status", "decision", "approval", "type", "error")
"""Members of a result whose text reports the decision."""
_APPROVAL_FLAGS = ("approved", "confirmed")
"""Members of a result that report the decision as true or false."""
_NO = ("false", "no")


def approval_state(
    call: ToolCall, pending: str = PENDING, rejections: tuple[str, ...] = REJECTIONS
) -> ApprovalState | None:
    """The state of a call; `None` if its result was not recorded.

    `pending` is the status of a call that waits for approval. Each of the words `rejections` means
    that a human rejected the call.
    """
    if not outcome_known(call):
        return None
    result = as_object(call.result)
    if pending in (call.result, result.get("status")):
        return "pending"
    if _is_no(call.result) or any(_is_no(result.get(key)) for key in _APPROVAL_FLAGS):
        return "rejected"
    texts = [result.get(key) for key in _DECISION_FIELDS] if result else [call.result]
    rejection = _any_phrase(rejections)
    for text in (call.error, *texts):
        if isinstance(text, str) and rejection.search(text.casefold()):
            return "rejected"
    if failed(call):
        return "failed"
    return "done"


def _is_no(value: Json) -> bool:
    return value is False or (isinstance(value, str) and value.strip().casefold() in _NO)


@lru_cache(maxsize=64)
def _any_phrase(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Finds any of the phrases as whole words; `rejected_by_user` counts as three words."""
    alternatives = "|".join(re.escape(phrase.casefold()) for phrase in phrases)
    return re.compile(rf"(?<![^\W_])(?:{alternatives})(?![^\W_])")
