"""Writes 700 simulated invocations of a refund agent as OTLP JSON lines: `python past.py > past.jsonl`.

One invocation in ten refunds another amount than it should, and one in fifty does not refund at all. Every
call writes the same file.
"""

import json
import random
from typing import Any

START_S = 1_760_000_400  # 2025-10-09T09:00:00Z
chance = random.Random(1)


def span(
    trace: str, name: str, begin: float, seconds: float, parent: str = "", **attributes: str
) -> dict[str, Any]:
    """A span whose attributes have `__` for each `.` in their names."""
    return {
        "traceId": trace,
        "spanId": chance.randbytes(8).hex(),
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(int((START_S + begin) * 1e9)),
        "endTimeUnixNano": str(int((START_S + begin + seconds) * 1e9)),
        "attributes": [
            {"key": key.replace("__", "."), "value": {"stringValue": value}}
            for key, value in attributes.items()
        ],
    }


def run(begin: float) -> list[dict[str, Any]]:
    """The spans of one invocation."""
    trace = chance.randbytes(16).hex()
    agent = span(
        trace,
        "invoke_agent support",
        begin,
        3,
        gen_ai__operation__name="invoke_agent",
        gen_ai__agent__name="support",
        pathgauge__scenario__id="refund",
    )
    luck = chance.random()
    amount = 95 if luck < 0.1 else 59
    calls = [("lookup_order", {"order": "A-1042"}), ("issue_refund", {"amount": amount})]
    if luck > 0.98:
        del calls[1]
    return [agent] + [
        span(
            trace,
            f"execute_tool {tool}",
            begin + 1 + number,
            0.5,
            agent["spanId"],
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name=tool,
            gen_ai__tool__call__arguments=json.dumps(arguments),
        )
        for number, (tool, arguments) in enumerate(calls)
    ]


for number in range(700):
    print(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": run(10 * number)}]}]}))
