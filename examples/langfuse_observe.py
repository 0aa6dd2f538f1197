# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "langfuse>=5,<6",
#   "openai>=2,<4",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
# ]
# ///
"""An agent of one's own with `@observe` of Langfuse: `uv run examples/langfuse_observe.py`.

Content is on by default. Tools are called with keyword arguments, so that the trace has their names. The scenario id is metadata of the
trace. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318, instead of Langfuse; the model is the one at
OPENAI_BASE_URL.
"""

import json
import os

from langfuse import Langfuse, observe, propagate_attributes
from langfuse.openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

# To feed both, leave `span_exporter` out and add a BatchSpanProcessor with this exporter to `trace.get_tracer_provider()`.
langfuse = Langfuse(public_key="pathgauge", secret_key="none", span_exporter=OTLPSpanExporter())


@observe(as_type="tool")
def lookup_order(order_id: str) -> dict[str, object]:
    """Find an order by its id."""
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


@observe(as_type="tool")
def issue_refund(order_id: str, amount: float) -> dict[str, object]:
    """Pay an amount in euros back."""
    return {"order_id": order_id, "refunded": amount}


TOOLS = {
    "lookup_order": (lookup_order, {"order_id": "string"}),
    "issue_refund": (issue_refund, {"order_id": "string", "amount": "number"}),
}


def schema(name: str) -> dict[str, object]:
    """What the model is told of a tool."""
    function, types = TOOLS[name]
    parameters = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in types.items()},
        "required": list(types),
    }
    return {
        "type": "function",
        "function": {"name": name, "description": function.__doc__, "parameters": parameters},
    }


@observe(as_type="agent")
def refund_agent(said: str) -> str:
    """One turn."""
    client, model = OpenAI(), os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")
    messages = [
        {"role": "system", "content": "You refund damaged items. Look the order up first."},
        {"role": "user", "content": said},
    ]
    while True:
        message = (
            client.chat.completions.create(
                model=model, messages=messages, tools=[schema(name) for name in TOOLS]
            )
            .choices[0]
            .message
        )
        messages.append(message.to_dict())
        for call in message.tool_calls or ():
            result = TOOLS[call.function.name][0](**json.loads(call.function.arguments))
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)}
            )
        if not message.tool_calls:
            return message.content


with propagate_attributes(metadata={"pathgauge_scenario_id": "refund_damaged"}):
    print(refund_agent("My headphones from order A-1042 arrived damaged, I want my money back."))
langfuse.shutdown()
