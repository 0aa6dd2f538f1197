"""A server on loopback that speaks the chat completions of OpenAI: replies come in, one after the
other or from a function; what it was asked goes out.

It is a real HTTP server in threads of its own, so that clients of any kind and other processes can
talk to it.
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
class Asked:
    """One request."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: dict[str, Any]

    @property
    def system(self) -> str:
        """The message with the instructions."""
        return self._of("system")

    @property
    def user(self) -> str:
        """The message with the data section."""
        return self._of("user")

    @property
    def data(self) -> dict[str, Any]:
        """What stands between the markers."""
        begin, line, end = self.user.split("\n")
        assert begin.startswith("BEGIN DATA ")
        assert end == begin.replace("BEGIN", "END", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def _of(self, role: str) -> str:
        (content,) = [
            message["content"] for message in self.body["messages"] if message["role"] == role
        ]
        return str(content)


@dataclass(frozen=True)
class Reply:
    """One answer, as it goes over the wire."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before it begins."""
    ends_after: int | None = None
    """Bytes of the body after which the connection ends; `None`: all are sent."""

    def after(self, seconds: float) -> Reply:
        """The same, later."""
        return replace(self, delay=seconds)


def completion(
    text: str | None,
    *,
    usage: tuple[int, int] | None = (100, 20),
    refusal: str | None = None,
    finish_reason: str = "stop",
) -> Reply:
    """A message of a model."""
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
    """A message that is one JSON object."""
    return completion(json.dumps(members), usage=usage)


def refusing() -> Reply:
    """The model declines."""
    return completion(None, refusal="I cannot help with that.")


def filtered() -> Reply:
    """A content filter ends the answer."""
    return completion("", finish_reason="content_filter")


def cut(text: str) -> Reply:
    """The answer is as long as it may get."""
    return completion(text, finish_reason="length")


def failing(
    status: int, *, code: str | None = None, message: str = "it failed", **headers: str
) -> Reply:
    """An error as OpenAI words it; underscores in names of headers are hyphens."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(body).encode(), {"Content-Type": "application/json", **named})


def redirecting(to: str, status: int = 307) -> Reply:
    """Somebody else is to be asked."""
    return Reply(status, headers={"Location": to})


def huge(size: int) -> Reply:
    """A body of that many bytes."""
    return Reply(body=b" " * size, headers={"Content-Type": "application/json"})


def bomb(size: int) -> Reply:
    """A small body that is that large once it is unpacked."""
    return Reply(
        body=gzip.compress(b" " * size),
        headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
    )


def hanging_up(reply: Reply) -> Reply:
    """The connection ends in the middle of the body."""
    return replace(reply, ends_after=len(reply.body) // 2)


class JudgeServer:
    """Listens from the beginning. Replies come in their order, and the last one again and again;
    `judge` decides each one itself.
    """

    def __init__(
        self,
        *replies: Reply,
        judge: Callable[[Asked], Reply] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        assert replies or judge
        self.asked: list[Asked] = []
        self.most_at_once = 0
        """Requests that were answered at the same time."""
        self._replies = [*replies]
        self._judge = judge or self._next
        self._at_once = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
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
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def then(self, *replies: Reply) -> None:
        """Forget what was left to reply, and go on with these."""
        with self._lock:
            self._replies = [*replies]

    def _next(self, _: Asked) -> Reply:
        with self._lock:
            return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]

    def reply(self, asked: Asked) -> Reply:
        """What a request is answered with, in its time."""
        with self._lock:
            self.asked.append(asked)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply = self._judge(asked)
            self._ended.wait(reply.delay)
            return reply
        finally:
            with self._lock:
                self._at_once -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Clients may leave."""


def _handler(server: JudgeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = server.reply(
                Asked(
                    self.path, {name.lower(): value for name, value in self.headers.items()}, body
                )
            )
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(reply.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body[: reply.ends_after])
            self.close_connection = reply.ends_after is not None

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
