# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "langchain>=1.4,<2",
#   "langchain-openai>=1.7,<2",
#   "mlflow-tracing>=3.17,<4",
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
# ]
# ///
"""LangGraph with MLflow Tracing: `uv run examples/langgraph_mlflow.py`.

Content is on by default. The scenario id is metadata of the run. MLflow takes no processors: naming an endpoint for traces sends them
there, instead of to MLflow, and that is the one of OTEL_EXPORTER_OTLP_ENDPOINT, or else http://localhost:4318. The model is the one
at OPENAI_BASE_URL.
"""

import os

# Not left in place: with an endpoint for metrics, mlflow-tracing 3.17 on its own loses its spans.
os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = (
    os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318") + "/v1/traces"
)
os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
os.environ.setdefault(
    "MLFLOW_TRACKING_URI", "http://localhost:5000"
)  # it wants one, even if it sends nothing there

import mlflow
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

mlflow.langchain.autolog()


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
mlflow.flush_trace_async_logging()
