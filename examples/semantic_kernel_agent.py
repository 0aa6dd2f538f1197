# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "semantic-kernel>=1.45,<2",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""Semantic Kernel with its own instrumentation: `uv run examples/semantic_kernel_agent.py`.

The two variables below switch spans and content on. Messages of the model are Python log records, so these are exported too.
The scenario id is baggage, which a processor copies to every span. Telemetry goes to OTEL_EXPORTER_OTLP_ENDPOINT, or else to
http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import asyncio
import logging
import os

os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS"] = "true"
os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE"] = "true"

from opentelemetry import baggage, context, trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider()
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
logs = LoggerProvider()
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
logger = logging.getLogger("semantic_kernel.utils.telemetry.model_diagnostics")
logger.addHandler(LoggingHandler(logger_provider=logs))
logger.setLevel(logging.INFO)


class Orders:
    """The plugin with the tools."""

    @kernel_function
    def lookup_order(self, order_id: str) -> dict[str, object]:
        """Find an order by its id."""
        return {"order_id": order_id, "item": "headphones", "paid": 59.9}

    @kernel_function
    def issue_refund(self, order_id: str, amount: float) -> dict[str, object]:
        """Pay an amount in euros back."""
        return {"order_id": order_id, "refunded": amount}


agent = ChatCompletionAgent(
    service=OpenAIChatCompletion(ai_model_id=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")),
    name="refund_agent",
    instructions="You refund damaged items. Look the order up first.",
    plugins=[Orders()],
)

# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
print(
    asyncio.run(
        agent.get_response("My headphones from order A-1042 arrived damaged, I want my money back.")
    )
)
provider.shutdown()
logs.shutdown()
