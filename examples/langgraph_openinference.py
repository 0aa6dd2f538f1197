# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "langchain>=1.4,<2",
#   "langchain-openai>=1.7,<2",
#   "openinference-instrumentation-langchain>=0.1.80,<0.2",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""LangGraph with OpenInference: `uv run examples/langgraph_openinference.py`.

Content is on by default. Long conversations need the raised attribute limit below. The scenario id is baggage, which a processor copies to
every span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import os

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import baggage, context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=10_000))
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LangChainInstrumentor().instrument(tracer_provider=provider)


def lookup_order(order_id: str) -> dict[str, object]:
    """Find an order by its id."""
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


def issue_refund(order_id: str, amount: float) -> dict[str, object]:
    """Pay an amount in euros back."""
    return {"order_id": order_id, "refunded": amount}


agent = create_agent(
    ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")),
    [lookup_order, issue_refund],
    system_prompt="You refund damaged items. Look the order up first.",
    name="refund_agent",
)

# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
said = {
    "role": "user",
    "content": "My headphones from order A-1042 arrived damaged, I want my money back.",
}
print(agent.invoke({"messages": [said]})["messages"][-1].content)
provider.shutdown()
