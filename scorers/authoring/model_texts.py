"""What the models of an invocation said before its final response."""

from __future__ import annotations

from pathgauge.scorers.types import Invocation, Score


def intermediate_texts(actual: Invocation) -> tuple[str, ...] | Score:
    """The texts in the order of the model calls, without the final response and without empty
    ones; a score with a reason if the text of a call was not recorded.
    """
    calls = [call for call in actual.model_calls if call.error is None]
    texts = [call.text for call in calls if call.text is not None]
    if not calls or len(texts) < len(calls):
        return Score.not_evaluated(
            "texts_not_recorded", "what the models said is not recorded for every call"
        )
    texts = [text for text in texts if text.strip()]
    # The text of a call may be cut off, so the final response may be longer.
    if texts and (actual.final_response or "").startswith(texts[-1]):
        del texts[-1]
    return tuple(texts)
