# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "langchain>=1.4,<2",
#   "langchain-openai>=1.7,<2",
#   "langsmith[otel]>=0.14.17,<0.16",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
# ]
# ///
"""LangGraph with the OpenTelemetry exporter of LangSmith: `uv run examples/langgraph_langsmith.py`.

Content is on by default. LangSmith makes its spans in a thread of its own, where there is no baggage: the scenario id is metadata of the
run. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import os

os.environ["LANGSMITH_TRACING"] = "true"
os.environ["LANGSMITH_TRACING_MODE"] = "otel"  # `hybrid` sends to LangSmith too

from langchain.agents import create_agent
from langchain_core.tracers.langchain import wait_for_all_tracers
from langchain_openai import ChatOpenAI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)


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

said = {
    "role": "user",
    "content": "My headphones from order A-1042 arrived damaged, I want my money back.",
}
answer = agent.invoke(
    {"messages": [said]}, {"metadata": {"pathgauge.scenario.id": "refund_damaged"}}
)
print(answer["messages"][-1].content)
wait_for_all_tracers()
provider.shutdown()
