# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "llama-index-core>=0.14.25,<0.15",
#   "llama-index-llms-openai-like>=0.8,<0.9",
#   "openinference-instrumentation-llama-index>=4.6,<5",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""LlamaIndex with OpenInference: `uv run examples/llama_index_agent.py`.

Content is on by default. Long conversations need the raised attribute limit below. The scenario id is baggage, which a processor copies to
every span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import asyncio
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry import baggage, context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=10_000))
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LlamaIndexInstrumentor().instrument(tracer_provider=provider)


def lookup_order(order_id: str) -> dict[str, object]:
    """Find an order by its id."""
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


def issue_refund(order_id: str, amount: float) -> dict[str, object]:
    """Pay an amount in euros back."""
    return {"order_id": order_id, "refunded": amount}


agent = FunctionAgent(
    name="refund_agent",
    description="Refunds damaged items.",
    system_prompt="You refund damaged items. Look the order up first.",
    tools=[lookup_order, issue_refund],
    llm=OpenAILike(
        model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"),
        api_base=os.environ.get("OPENAI_BASE_URL"),
        api_key=os.environ.get("OPENAI_API_KEY"),
        is_chat_model=True,
        is_function_calling_model=True,
    ),
)


async def run(said: str) -> str:
    """One turn."""
    return str(await agent.run(said))


# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
print(asyncio.run(run("My headphones from order A-1042 arrived damaged, I want my money back.")))
provider.shutdown()
