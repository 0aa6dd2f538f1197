# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""A model without a model: requests of an agent come in; two tool calls, one after the other, and a final answer go out.

It answers as OpenAI's Chat Completions (streaming too), OpenAI's Responses and Gemini's generateContent do, on loopback, for the
examples beside it. Run `python scripted_model.py`, then an example with the variables that it prints.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

SCRIPT = (
    ("lookup_order", {"order_id": "A-1042"}),
    ("issue_refund", {"order_id": "A-1042", "amount": 59.9}),
)
ANSWER = "I have refunded 59.90 euros to your card."
USAGE = (120, 20)


def next_call(answered: int, offered: list[str]) -> tuple[str, str, Json] | None:
    """Id, name and arguments of the call that comes after so many answers; `None` when it is time for the final one."""
    if answered < len(SCRIPT):
        name, arguments = SCRIPT[answered]
    elif (
        answered == len(SCRIPT) and "final_answer" in offered
    ):  # some frameworks take the answer as a call
        name, arguments = "final_answer", {"answer": ANSWER}
    else:
        return None
    full_name = next(
        tool for tool in offered if tool.endswith(name)
    )  # some put the name of a group before it
    return f"call_{answered}", full_name, arguments


def chat_completion(request: Json) -> Json:
    """POST /v1/chat/completions."""
    answered = sum(message["role"] == "assistant" for message in request["messages"])
    call = next_call(answered, [tool["function"]["name"] for tool in request.get("tools", ())])
    message: Json = {"role": "assistant", "content": None if call else ANSWER}
    if call:
        function = {"name": call[1], "arguments": json.dumps(call[2])}
        message["tool_calls"] = [{"id": call[0], "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
    usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}
    envelope = {
        "id": f"chat_{answered}",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
    }
    return envelope | {"choices": [choice], "usage": usage}


def chat_chunks(completion: Json) -> list[Json]:
    """The same completion as two chunks of a stream."""
    [choice] = completion.pop("choices")
    delta = choice["message"]
    for index, call in enumerate(delta.get("tool_calls", ())):
        call["index"] = index
    envelope = completion | {"object": "chat.completion.chunk", "usage": None}
    said = {"index": 0, "delta": delta, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    return [
        envelope | {"choices": [said]},
        envelope | {"choices": [end]},
        envelope | {"choices": [], "usage": completion["usage"]},
    ]


def response(request: Json) -> Json:
    """POST /v1/responses."""
    results = [
        item["call_id"] for item in request["input"] if item.get("type") == "function_call_output"
    ]
    answered = (
        int(results[-1].removeprefix("call_")) + 1 if results else 0
    )  # earlier items may be left to the server's memory
    call = next_call(answered, [tool["name"] for tool in request.get("tools", ())])
    item: Json = {"id": f"item_{answered}", "status": "completed"}
    if call:
        item |= {
            "type": "function_call",
            "call_id": call[0],
            "name": call[1],
            "arguments": json.dumps(call[2]),
        }
    else:
        item |= {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
        }
    details = {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    usage = {
        "input_tokens": USAGE[0],
        "output_tokens": USAGE[1],
        "total_tokens": sum(USAGE),
        **details,
    }
    envelope = {
        "id": f"resp_{answered}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": request["model"],
    }
    settings = {
        "tools": request.get("tools", []),
        "tool_choice": "auto",
        "parallel_tool_calls": False,
    }
    return envelope | settings | {"output": [item], "usage": usage}


def generated_content(request: Json, model: str) -> Json:
    """POST /v1beta/models/MODEL:generateContent."""
    answered = sum(content["role"] == "model" for content in request["contents"])
    call = next_call(
        answered,
        [
            declared["name"]
            for tool in request.get("tools", ())
            for declared in tool["functionDeclarations"]
        ],
    )
    part = (
        {"functionCall": {"id": call[0], "name": call[1], "args": call[2]}}
        if call
        else {"text": ANSWER}
    )
    usage = {
        "promptTokenCount": USAGE[0],
        "candidatesTokenCount": USAGE[1],
        "totalTokenCount": sum(USAGE),
    }
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": model,
        "responseId": f"resp_{answered}",
    }


class Handler(BaseHTTPRequestHandler):
    """Finds the API by the path of the request."""

    def do_POST(self) -> None:
        """Answer a request of any of the APIs."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/chat/completions"):
            completion = chat_completion(request)
            self._send(*chat_chunks(completion)) if request.get("stream") else self._send(
                completion
            )
        elif self.path.endswith("/responses"):
            self._send(response(request))
        elif ":generateContent" in self.path:
            self._send(generated_content(request, self.path.rpartition("/")[2].partition(":")[0]))
        else:
            self.send_error(404)

    def _send(self, *answers: Json) -> None:
        """One answer as JSON, several as server-sent events."""
        stream = len(answers) > 1
        events = [f"data: {json.dumps(answer)}\n\n" for answer in answers] + ["data: [DONE]\n\n"]
        body = ("".join(events) if stream else json.dumps(answers[0])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        """Say nothing: the agent tells what it was answered."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8099, help="0 takes a free one")
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    print(
        f"export OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY=none GOOGLE_GEMINI_BASE_URL={address} GOOGLE_API_KEY=none",
        flush=True,
    )
    server.serve_forever()
