# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "langchain>=1.4,<2",
#   "langchain-openai>=1.7,<2",
#   "langfuse>=5,<6",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
# ]
# ///
"""LangGraph with Langfuse: `uv run examples/langgraph_langfuse.py`.

Content is on by default. The scenario id is metadata of the trace. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to
http://localhost:4318, instead of Langfuse; the model is the one at OPENAI_BASE_URL.
"""

import os

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langfuse import Langfuse, propagate_attributes
from langfuse.langchain import CallbackHandler
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

# To feed both, leave `span_exporter` out and add a BatchSpanProcessor with this exporter to `trace.get_tracer_provider()`.
langfuse = Langfuse(public_key="pathgauge", secret_key="none", span_exporter=OTLPSpanExporter())


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
with propagate_attributes(metadata={"pathgauge_scenario_id": "refund_damaged"}):
    answer = agent.invoke({"messages": [said]}, {"callbacks": [CallbackHandler()]})
print(answer["messages"][-1].content)
langfuse.shutdown()
