"""The signal that a session ended with a turn, in any form that senders may write."""

from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.testing import log, span, trace_id
from support.dialects import read

KEY = "pathgauge.session.end"


def signal(*spans: Any, logs: tuple[Any, ...] = ()) -> str | None:
    [found] = read(Trace("", trace_id("trace"), spans, logs))
    return found.session_end


def agent(attributes: dict[str, Any] | None = None, **more: Any) -> Any:
    return span("agent", "invoke_agent a", attributes or {}, end=9, **more)


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("resolved", "resolved"),
        ("  Handed \n Over ", "handed over"),
        ("x" * 65, "x" * 64),
        (True, "ended"),
        (False, None),
        ("", None),
        (1, None),
    ],
)
def test_the_value_says_how_a_session_ended(value: Any, outcome: str | None) -> None:
    assert signal(agent({KEY: value})) == outcome


def test_an_event_and_a_log_record_signal_the_end() -> None:
    assert signal(agent(events=[(KEY, {"outcome": "abandoned"})])) == "abandoned"
    assert signal(agent(events=[(KEY, {})])) == "ended"
    assert signal(agent(events=[("other", {"outcome": "abandoned"})])) is None
    assert signal(agent(), logs=(log(KEY, {"outcome": "escalated"}, span="agent"),)) == "escalated"
    assert signal(agent(), logs=(log("said", {KEY: "escalated"}, span="agent"),)) == "escalated"
    assert signal(agent(), logs=(log("other", {"outcome": "x"}, span="agent"),)) is None


def test_any_span_of_the_turn_signals_the_end_and_the_last_outcome_counts() -> None:
    def tool(value: Any) -> Any:
        return span("tool", "execute_tool t", {KEY: value}, parent="agent", start=1, end=2)

    assert signal(agent(), tool("resolved")) == "resolved"
    assert signal(agent({KEY: "escalated"}), tool("resolved")) == "resolved"
    assert signal(agent({KEY: "escalated"}), tool(True)) == "escalated"
    assert signal(agent({KEY: True}), tool("escalated")) == "escalated"
