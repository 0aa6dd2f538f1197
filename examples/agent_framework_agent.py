# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "agent-framework-core>=1.23,<2",
#   "agent-framework-openai>=1.17,<2",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""Microsoft Agent Framework with its own instrumentation: `uv run examples/agent_framework_agent.py`.

Content is switched on by the variable below. The scenario id is baggage, which a processor copies to every span. Spans go to
OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import asyncio
import os

os.environ["ENABLE_SENSITIVE_DATA"] = "true"

from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient
from opentelemetry import baggage, context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider()
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)


def lookup_order(order_id: str) -> dict[str, object]:
    """Find an order by its id."""
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


def issue_refund(order_id: str, amount: float) -> dict[str, object]:
    """Pay an amount in euros back."""
    return {"order_id": order_id, "refunded": amount}


agent = Agent(
    OpenAIChatClient(model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")),
    "You refund damaged items. Look the order up first.",
    name="refund_agent",
    tools=[lookup_order, issue_refund],
)

# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
print(
    asyncio.run(
        agent.run("My headphones from order A-1042 arrived damaged, I want my money back.")
    ).text
)
provider.shutdown()
