# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "google-adk>=2.13,<3",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""Google ADK with its own instrumentation: `uv run examples/google_adk_agent.py`.

Content is switched on by the variable below; ADK up to 2.12 has it on by default. The scenario id is baggage, which a processor copies to
every span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318; the model is the one at GOOGLE_GEMINI_BASE_URL.
"""

import asyncio
import os

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = (
    "SPAN_AND_EVENT"  # `true` would be too little
)

from google.adk.agents import Agent
from google.adk.runners import InMemoryRunner
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
    name="refund_agent",
    model=os.environ.get("GEMINI_MODEL", "gemini-2.5-flash"),
    instruction="You refund damaged items. Look the order up first.",
    tools=[lookup_order, issue_refund],
)

# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
said = "My headphones from order A-1042 arrived damaged, I want my money back."
events = asyncio.run(InMemoryRunner(agent=agent).run_debug(said, quiet=True))
print(events[-1].content.parts[-1].text)
provider.shutdown()
