"""A loopback server with the OpenAI chat completions API, and scripted or computed replies.

It is a real HTTP server in its own threads, so other processes can use it, too.
"""

from __future__ import annotations

import gzip
import json
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class JudgeRequest:
    """One request that the server received."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: dict[str, Any]

    @property
    def system(self) -> str:
        """The message with the instructions."""
        return self._content("system")

    @property
    def user(self) -> str:
        """The message with the data section."""
        return self._content("user")

    @property
    def data(self) -> dict[str, Any]:
        """The JSON between the markers."""
        begin, line, end = self.user.split("\n")
        assert begin.startswith("BEGIN DATA ")
        assert end == begin.replace("BEGIN", "END", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def _content(self, role: str) -> str:
        messages = self.body["messages"]
        (content,) = [message["content"] for message in messages if message["role"] == role]
        return str(content)


@dataclass(frozen=True)
class Reply:
    """One HTTP response."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the response begins."""
    ends_after: int | None = None
    """Close the connection after this many bytes of the body; `None`: send all."""

    def after(self, seconds: float) -> Reply:
        """The same reply with a delay."""
        return replace(self, delay=seconds)


def completion(
    text: str | None,
    *,
    usage: tuple[int, int] | None = (100, 20),
    refusal: str | None = None,
    finish_reason: str = "stop",
) -> Reply:
    """A chat completion."""
    found: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "judge",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": refusal},
                "finish_reason": finish_reason,
                "logprobs": None,
            }
        ],
    }
    if usage is not None:
        found["usage"] = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }
    return Reply(body=json.dumps(found).encode(), headers={"Content-Type": "application/json"})


def answering(usage: tuple[int, int] | None = (100, 20), **members: Any) -> Reply:
    """A chat completion whose text is one JSON object."""
    return completion(json.dumps(members), usage=usage)


def refusing() -> Reply:
    """A refusal by the model."""
    return completion(None, refusal="I cannot help with that.")


def filtered() -> Reply:
    """A completion that a content filter ended."""
    return completion("", finish_reason="content_filter")


def cut(text: str) -> Reply:
    """A completion that reached the token limit."""
    return completion(text, finish_reason="length")


def failing(
    status: int, *, code: str | None = None, message: str = "it failed", **headers: str
) -> Reply:
    """An error in OpenAI's format. Underscores in header names become hyphens."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(body).encode(), {"Content-Type": "application/json", **named})


def redirecting(to: str, status: int = 307) -> Reply:
    """A redirect."""
    return Reply(status, headers={"Location": to})


def huge(size: int) -> Reply:
    """A response with a body of `size` bytes."""
    return Reply(body=b" " * size, headers={"Content-Type": "application/json"})


def bomb(size: int) -> Reply:
    """A compressed response whose body has `size` bytes when decompressed."""
    return Reply(
        body=gzip.compress(b" " * size),
        headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
    )


def hanging_up(reply: Reply) -> Reply:
    """The same reply, but the connection closes in the middle of the body."""
    return replace(reply, ends_after=len(reply.body) // 2)


class JudgeServer:
    """Listens from construction on. Gives `replies` in order and repeats the last one, or calls
    `judge` for each request.
    """

    def __init__(
        self,
        *replies: Reply,
        judge: Callable[[JudgeRequest], Reply] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        assert replies or judge
        self.requests: list[JudgeRequest] = []
        self.max_concurrent = 0
        """The highest number of concurrent requests."""
        self._replies = [*replies]
        self._judge = judge or self._next
        self._concurrent = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}/v1"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True
        ).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def then(self, *replies: Reply) -> None:
        """Replace the remaining replies."""
        with self._lock:
            self._replies = [*replies]

    def _next(self, _: JudgeRequest) -> Reply:
        with self._lock:
            return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]

    def reply(self, request: JudgeRequest) -> Reply:
        """The reply to a request, after its delay."""
        with self._lock:
            self.requests.append(request)
            self._concurrent += 1
            self.max_concurrent = max(self.max_concurrent, self._concurrent)
        try:
            reply = self._judge(request)
            self._closing.wait(reply.delay)
            return reply
        finally:
            with self._lock:
                self._concurrent -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect."""


def _handler(server: JudgeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = server.reply(JudgeRequest(self.path, headers, body))
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(reply.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body[: reply.ends_after])
            self.close_connection = reply.ends_after is not None

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
