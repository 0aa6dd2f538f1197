"""What became of a call that a human has to approve: the call comes in, whether it waits, was
refused, failed or was carried out goes out.

Frameworks and tools say it in many ways: as a `status`, as `approved: false`, or in the text that
the model is told, such as "The user rejected the tool call."
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

_SAYING = ("status", "decision", "approval", "type", "error")
"""The members of a result that tell what was decided."""
_CONSENT = ("approved", "confirmed")
"""Those that do so with true or false."""
_NO = ("false", "no")


def approval_state(
    call: ToolCall, pending: str = PENDING, rejections: tuple[str, ...] = REJECTIONS
) -> ApprovalState | None:
    """What became of a call; `None` when its result was not recorded.

    `pending` is the status of a call that waits for approval. `rejections` are words of which one
    says that a human refused.
    """
    if not outcome_known(call):
        return None
    result = as_object(call.result)
    if pending in (call.result, result.get("status")):
        return "pending"
    if any(_is_no(said) for said in (call.result, *(result.get(key) for key in _CONSENT))):
        return "rejected"
    refusal = _any_of(rejections)
    told = (
        (call.error, *(result.get(key) for key in _SAYING)) if result else (call.error, call.result)
    )
    if any(isinstance(text, str) and refusal.search(text.casefold()) for text in told):
        return "rejected"
    return "failed" if failed(call) else "done"


def _is_no(said: Json) -> bool:
    return said is False or (isinstance(said, str) and said.strip().casefold() in _NO)


@lru_cache(maxsize=64)
def _any_of(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Finds one of the phrases between other words; `rejected_by_user` has three words."""
    alternatives = "|".join(re.escape(phrase.casefold()) for phrase in phrases)
    return re.compile(rf"(?<![^\W_])(?:{alternatives})(?![^\W_])")
