# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "crewai>=1.15.30,<2",
#   "openinference-instrumentation-crewai>=1.1.21,<2",
#   "openinference-instrumentation-openai>=0.1.66,<0.2",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "opentelemetry-processor-baggage>=0.59b0",
# ]
# ///
"""CrewAI with OpenInference: `uv run examples/crewai_agent.py`.

Content is on by default. Model calls and tokens come from the instrumentation of the OpenAI client. Long conversations need the raised
attribute limit below. The scenario id is baggage, which a processor copies to every span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else
to http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import os

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"  # its own, which is not about this agent

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from openinference.instrumentation.crewai import CrewAIInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import baggage, context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SCENARIO = "pathgauge.scenario.id"

provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=10_000))
provider.add_span_processor(BaggageSpanProcessor(lambda key: key == SCENARIO))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
CrewAIInstrumentor().instrument(tracer_provider=provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)


@tool
def lookup_order(order_id: str) -> dict[str, object]:
    """Find an order by its id."""
    return {"order_id": order_id, "item": "headphones", "paid": 59.9}


@tool
def issue_refund(order_id: str, amount: float) -> dict[str, object]:
    """Pay an amount in euros back."""
    return {"order_id": order_id, "refunded": amount}


agent = Agent(
    role="refund_agent",
    goal="Refund damaged items.",
    backstory="You refund damaged items. Look the order up first.",
    tools=[lookup_order, issue_refund],
    llm=LLM(model="openai/" + os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")),
)
task = Task(description="{said}", expected_output="What was done, in one sentence.", agent=agent)
crew = Crew(agents=[agent], tasks=[task])

# In a service the id arrives in the request's `baggage` header.
context.attach(baggage.set_baggage(SCENARIO, "refund_damaged"))
print(
    crew.kickoff(
        {"said": "My headphones from order A-1042 arrived damaged, I want my money back."}
    ).raw
)
provider.shutdown()
