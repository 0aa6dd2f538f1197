# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "strands-agents[openai]>=1.62,<2",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""Strands Agents with its own instrumentation: `uv run examples/strands_agent.py`.

Content is on by default, as span events; the variable below brings the conventions of today and the tokens of this turn alone.
The scenario id is baggage, which a processor copies to every span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to
http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import os

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = (
    "gen_ai_latest_experimental,gen_ai_use_latest_invocation_tokens"
)

from opentelemetry import baggage, context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from strands import Agent, tool
from strands.models.openai import OpenAIModel

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider()
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)


@tool
def lookup_order(order_id: str) -> dict[str, object]:
    """Find an order by its id."""
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


@tool
def issue_refund(order_id: str, amount: float) -> dict[str, object]:
    """Pay an amount in euros back."""
    return {"order_id": order_id, "refunded": amount}


agent = Agent(
    OpenAIModel(model_id=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")),
    name="refund_agent",
    system_prompt="You refund damaged items. Look the order up first.",
    tools=[lookup_order, issue_refund],
    callback_handler=None,
)

# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
print(agent("My headphones from order A-1042 arrived damaged, I want my money back."))
provider.shutdown()
