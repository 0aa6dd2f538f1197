"""Words in names of spans and attributes that speak of agents, models and tools.

They tell that telemetry which no dialect understands may describe agents, so that it is counted and
not just absent. The word alone decides nothing: `tool` may be a build tool. So it takes two
subjects, or one word that nothing else uses. `user_agent` is the program that sends a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

_MARKS = (b"llm", b"LLM", b"gen_ai", b"genai", b"prompt", b"Prompt", b"_tokens", b'"role"')
_MORE_MARKS = (b"tool", b"input", b"output", b"Tool", b"completion", b".tokens", b"Tokens")
"""Marks that may be in the route or the statement of a request, too."""
_REQUESTS = (
    b"http.request.method",
    b"http.method",
    b"db.system",
    b"rpc.system",
    b"messaging.system",
)
_AGENT = re.compile(rb"(?<!user[_.-])(?<!User-)[aA]gent")
"""Almost every span of HTTP has a `user_agent`."""

_LIBRARIES = (
    *("aiohttp", "aiopg", "asgi", "asyncpg", "celery", "dbapi", "django", "express", "fastapi"),
    *("flask", "fs", "grpc", "http", "ioredis", "kafka", "logging", "mongo", "mysql", "net", "pg"),
    *("psycopg", "pymongo", "pymysql", "redis", "requests", "sqlalchemy", "sqlite3", "starlette"),
    *("tornado", "undici", "urllib", "wsgi"),
)
_INFRASTRUCTURE = (
    *(f"opentelemetry.instrumentation.{name}" for name in _LIBRARIES),
    *(f"@opentelemetry/instrumentation-{name}" for name in _LIBRARIES),
)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_NAME = 200

_DEFINITE = frozenset({"llm", "llms", "genai", "prompt", "prompts", "toolcall", "toolcalls"})
_SUBJECTS = {
    "agent": "agent",
    "agents": "agent",
    "assistant": "agent",
    "tool": "tool",
    "tools": "tool",
    "function": "tool",
    "model": "model",
    "chat": "model",
    "completion": "model",
    "completions": "model",
    "tokens": "tokens",
    "message": "message",
    "messages": "message",
}
_PAIRS = frozenset(
    {("gen", "ai"), ("tool", "call"), ("tool", "calls"), ("tool", "name"), ("agent", "name")}
)
_TOKENS = frozenset({"input", "output", "prompt", "completion", "total"})


def words(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: `toolName`, `tool.name` and `TOOL_NAME` have the same."""
    return _words(name[:_MAX_NAME])


@lru_cache(maxsize=4096)
def _words(beginning: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(beginning))


def is_infrastructure(scope: str) -> bool:
    """Whether a scope is that of an instrumentation of servers, clients or databases: they make
    most of the spans beside those of agents.
    """
    return scope.startswith(_INFRASTRUCTURE)


def may_speak(raw: bytes) -> bool:
    """Whether an encoded span may speak of agents. Nearly all that do not are found by this,
    without being decoded.
    """
    if has_mark(raw, _MARKS):
        return True
    if has_mark(raw, _REQUESTS):
        return False
    return has_mark(raw, _MORE_MARKS) or (b"gent" in raw and _AGENT.search(raw) is not None)


def has_mark(raw: bytes, marks: Iterable[bytes]) -> bool:
    """Whether an encoded span contains any of the marks. Called several times for each span."""
    return any(map(raw.__contains__, marks))


def speaks_of_agents(names: Iterable[str]) -> bool:
    """Whether the names of a span and its attributes speak of agents, models or tools."""
    subjects: set[str] = set()
    for name in names:
        found = words(name)
        pairs = set(pairwise(found))
        if not _DEFINITE.isdisjoint(found) or not _PAIRS.isdisjoint(pairs):
            return True
        if ("user", "agent") in pairs or "messaging" in found:
            continue
        if "tokens" in found and _TOKENS.isdisjoint(found):
            continue
        subjects.update(_SUBJECTS[word] for word in found if word in _SUBJECTS)
    return len(subjects) > 1
