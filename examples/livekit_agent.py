# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "livekit-agents[openai]>=1.8.9,<2",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""LiveKit Agents with its own instrumentation: `uv run examples/livekit_agent.py`.

A session over text, so that neither a room nor models of speech are needed. Content is on by default. The scenario id is baggage,
which a processor copies to every span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318; the model is the
one at OPENAI_BASE_URL.
"""

import asyncio
import os

from livekit.agents import Agent, AgentSession, function_tool, telemetry
from livekit.plugins import openai
from opentelemetry import baggage, context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider()
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
telemetry.set_tracer_provider(provider)


@function_tool
async def lookup_order(order_id: str) -> dict[str, object]:
    """Find an order by its id."""
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


@function_tool
async def issue_refund(order_id: str, amount: float) -> dict[str, object]:
    """Pay an amount in euros back."""
    return {"order_id": order_id, "refunded": amount}


agent = Agent(
    id="refund_agent",
    instructions="You refund damaged items. Look the order up first.",
    tools=[lookup_order, issue_refund],
)


async def main() -> None:
    """Ask one question over text."""
    model = openai.LLM(model=os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"))
    async with AgentSession(llm=model) as session:
        await session.start(agent)
        question = "My headphones from order A-1042 arrived damaged, I want my money back."
        result = await session.run(user_input=question)
        print(result.events[-1].item.text_content)


# In a service the id arrives with the job, for example in its metadata.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
asyncio.run(main())
provider.shutdown()
