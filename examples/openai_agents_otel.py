# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "openai-agents>=0.24,<0.25",
#   "opentelemetry-instrumentation-genai-openai>=1.3b0",
#   "opentelemetry-instrumentation-genai-openai-agents>=1.3b0",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""OpenAI Agents SDK with the instrumentations of the OpenTelemetry project: `uv run examples/openai_agents_otel.py`.

Content is switched on by the variable below. Model calls have spans only if the OpenAI client is instrumented, too. The scenario id is
baggage, which a processor copies to every span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318; the model is
the one at OPENAI_BASE_URL.
"""

import os

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from agents import Agent, Runner, function_tool, set_trace_processors
from opentelemetry import baggage, context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider()
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
set_trace_processors([])  # the SDK would send its own trace to OpenAI, too
OpenAIInstrumentor().instrument(tracer_provider=provider)
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


@function_tool
def lookup_order(order_id: str) -> dict[str, object]:
    """Find an order by its id."""
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


@function_tool
def issue_refund(order_id: str, amount: float) -> dict[str, object]:
    """Pay an amount in euros back."""
    return {"order_id": order_id, "refunded": amount}


agent = Agent(
    name="refund_agent",
    instructions="You refund damaged items. Look the order up first.",
    tools=[lookup_order, issue_refund],
    model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"),
)

# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
print(
    Runner.run_sync(
        agent, "My headphones from order A-1042 arrived damaged, I want my money back."
    ).final_output
)
provider.shutdown()
