"""What the models of an invocation said before its final response."""

from __future__ import annotations

from pathgauge.scorers.types import Invocation, ModelCall, Score


def intermediate_texts(actual: Invocation) -> tuple[str, ...] | Score:
    """The texts in the order of the model calls, without the final response and without empty
    ones; a score with a reason if the text of a call was not recorded.
    """
    calls = calls_with_intermediate_texts(actual)
    return calls if isinstance(calls, Score) else tuple(call.text or "" for call in calls)


def calls_with_intermediate_texts(actual: Invocation) -> tuple[ModelCall, ...] | Score:
    """The model calls of `intermediate_texts`, in their order."""
    calls = [call for call in actual.model_calls if call.error is None]
    if not calls or any(call.text is None for call in calls):
        return Score.not_evaluated(
            "texts_not_recorded", "what the models said is not recorded for every call"
        )
    said = [call for call in calls if call.text and call.text.strip()]
    # The text of a call may be cut off, so the final response may be longer. Frameworks strip it,
    # or write its JSON in another layout.
    if said and _dense(actual.final_response).startswith(_dense(said[-1].text)):
        del said[-1]
    return tuple(said)


def _dense(text: str | None) -> str:
    """The text without white space."""
    return "".join((text or "").split())
