# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "autogen-agentchat>=0.7.5,<0.8",
#   "autogen-ext[openai]>=0.7.5,<0.8",
#   "opentelemetry-instrumentation-genai-openai>=1.3b0",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""AutoGen with its own instrumentation, and that of the OpenAI client: `uv run examples/autogen_agent.py`.

AutoGen records no content. What the model asked for and answered is on the spans of the OpenAI client, with the variable below. The
scenario id is baggage, which a processor copies to every span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to
http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import asyncio
import os

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from opentelemetry import baggage, context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider()
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()


def lookup_order(order_id: str) -> dict[str, object]:
    """Find an order by its id."""
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


def issue_refund(order_id: str, amount: float) -> dict[str, object]:
    """Pay an amount in euros back."""
    return {"order_id": order_id, "refunded": amount}


agent = AssistantAgent(
    "refund_agent",
    OpenAIChatCompletionClient(model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")),
    tools=[lookup_order, issue_refund],
    system_message="You refund damaged items. Look the order up first.",
    max_tool_iterations=10,
)

# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
result = asyncio.run(
    agent.run(task="My headphones from order A-1042 arrived damaged, I want my money back.")
)
print(result.messages[-1].content)
provider.shutdown()
