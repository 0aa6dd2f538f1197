# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "opentelemetry-exporter-otlp-proto-http>=1.38,<2",
#   "pathgauge",
# ]
#
# [tool.uv.sources]
# pathgauge = { path = ".." }
# ///
"""An agent without framework, instrumented by hand as the GenAI conventions say: `uv run examples/by_hand.py`.

Content is what the code below puts on its spans. The scenario id comes from `scenario` of pathgauge, whose processor copies it to every
span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, or else to http://localhost:4318; the model is the one at OPENAI_BASE_URL.
"""

import json
import os
from urllib.request import Request, urlopen

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from pathgauge import ScenarioSpanProcessor, scenario

MODEL = os.environ.get("OPENAI_MODEL", "gpt-4.1-mini")
PARAMETERS = {
    "lookup_order": {"order_id": "string"},
    "issue_refund": {"order_id": "string", "amount": "number"},
}

provider = TracerProvider()
provider.add_span_processor(ScenarioSpanProcessor())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("refund_agent")


def tool(name: str, arguments: dict) -> dict:
    """Do what a tool does."""
    if name == "lookup_order":
        return {**arguments, "item": "headphones", "paid": 59.9}
    return {"order_id": arguments["order_id"], "refunded": arguments["amount"]}


def ask(messages: list[dict]) -> dict:
    """The answer of the model to a conversation."""
    schemas = {
        name: {key: {"type": kind} for key, kind in types.items()}
        for name, types in PARAMETERS.items()
    }
    tools = [
        {"name": name, "parameters": {"type": "object", "properties": schema}}
        for name, schema in schemas.items()
    ]
    body = {
        "model": MODEL,
        "messages": messages,
        "tools": [{"type": "function", "function": function} for function in tools],
    }
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}",
    }
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as response:
        return json.load(response)


def chat(messages: list[dict]) -> dict:
    """One model call: the message that the model answers."""
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": MODEL,
    }
    with tracer.start_as_current_span(f"chat {MODEL}", attributes=about) as span:
        answer = ask(messages)
        [choice] = answer["choices"]
        span.set_attribute("gen_ai.response.finish_reasons", [choice["finish_reason"]])
        span.set_attribute("gen_ai.usage.input_tokens", answer["usage"]["prompt_tokens"])
        span.set_attribute("gen_ai.usage.output_tokens", answer["usage"]["completion_tokens"])
    return choice["message"]


def execute(call: dict) -> dict:
    """One tool call: the message with its result."""
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call["id"],
    }
    with tracer.start_as_current_span(
        f"execute_tool {name}", attributes={**about, "gen_ai.tool.call.arguments": arguments}
    ) as span:
        result = json.dumps(tool(name, json.loads(arguments)))
        span.set_attribute("gen_ai.tool.call.result", result)
    return {"role": "tool", "tool_call_id": call["id"], "content": result}


def text(role: str, content: str) -> str:
    """A list with one message, as the conventions write it."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": content}]}])


def run(said: str) -> str:
    """One turn: the answer of the agent."""
    messages = [
        {"role": "system", "content": "You refund damaged items. Look the order up first."},
        {"role": "user", "content": said},
    ]
    about = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "refund_agent",
        "gen_ai.input.messages": text("user", said),
    }
    with tracer.start_as_current_span("invoke_agent refund_agent", attributes=about) as span:
        while calls := (reply := chat(messages)).get("tool_calls"):
            messages += [reply, *map(execute, calls)]
        span.set_attribute("gen_ai.output.messages", text("assistant", reply["content"] or ""))
    return reply["content"]


with scenario("refund_damaged"):
    print(run("My headphones from order A-1042 arrived damaged, I want my money back."))
provider.shutdown()
