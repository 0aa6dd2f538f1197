# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "haystack-ai>=3.4,<4",
#   "opentelemetry-haystack>=2,<3",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""Haystack with its OpenTelemetry integration: `uv run examples/haystack_agent.py`.

Content is switched on by the variable below. The scenario id is baggage, which a processor copies to every span. Spans go to
OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import os

os.environ["HAYSTACK_CONTENT_TRACING_ENABLED"] = "true"

from typing import Annotated

from haystack import tracing
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer
from opentelemetry import baggage, context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider()
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracing.enable_tracing(OpenTelemetryTracer(provider.get_tracer("haystack")))


@tool
def lookup_order(order_id: Annotated[str, "id of the order"]) -> dict[str, object]:
    """Find an order by its id."""
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


@tool
def issue_refund(
    order_id: Annotated[str, "id of the order"], amount: Annotated[float, "in euros"]
) -> dict[str, object]:
    """Pay an amount in euros back."""
    return {"order_id": order_id, "refunded": amount}


agent = Agent(
    chat_generator=OpenAIChatGenerator(model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")),
    system_prompt="You refund damaged items. Look the order up first.",
    tools=[lookup_order, issue_refund],
)

# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
said = ChatMessage.from_user(
    "My headphones from order A-1042 arrived damaged, I want my money back."
)
print(agent.run(messages=[said])["last_message"].text)
provider.shutdown()
