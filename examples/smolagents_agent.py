# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "smolagents[openai]>=1.26,<2",
#   "openinference-instrumentation-smolagents>=0.1.43,<0.2",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""smolagents with OpenInference: `uv run examples/smolagents_agent.py`.

Content is on by default. Long conversations need the raised attribute limit below. The scenario id is baggage, which a processor copies to
every span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import os

from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from opentelemetry import baggage, context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from smolagents import OpenAIModel, ToolCallingAgent, tool

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=10_000))
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
SmolagentsInstrumentor().instrument(tracer_provider=provider)


@tool
def lookup_order(order_id: str) -> dict:
    """Find an order by its id.

    Args:
        order_id: The id of the order.
    """
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


@tool
def issue_refund(order_id: str, amount: float) -> dict:
    """Pay money back.

    Args:
        order_id: The id of the order.
        amount: The amount in euros.
    """
    return {"order_id": order_id, "refunded": amount}


agent = ToolCallingAgent(
    [lookup_order, issue_refund],
    OpenAIModel(
        os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"),
        api_base=os.environ.get("OPENAI_BASE_URL"),
        api_key=os.environ.get("OPENAI_API_KEY"),
    ),
    instructions="You refund damaged items. Look the order up first.",
    name="refund_agent",
    description="Refunds damaged items.",
    verbosity_level=0,
)

# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
print(agent.run("My headphones from order A-1042 arrived damaged, I want my money back."))
provider.shutdown()
